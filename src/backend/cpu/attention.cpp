#include "backend/cpu/attention.h"

#include <algorithm>
#include <array>

namespace godwit::cpu {
namespace {

// Up to so many tokens, a call is cut by blocks of positions and merged in a second phase; above,
// by tokens, and each item goes through its blocks itself. The results are the same bits.
constexpr size_t kSplitTokens = 8;
// Query rows that share one pass over a block: K and V are fetched once for all of them, and their
// scores (32 KiB) stay in the first- or second-level cache.
constexpr size_t kMaxRows = 32;

const AttentionKernels& kernels(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return generic::kAttentionKernels;
    case Isa::kAvx2:
      return avx2::kAttentionKernels;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Bf16:
      return avx512vnni::kAttentionKernels;
  }
  return generic::kAttentionKernels;
}

// Index in AttentionKernels::score and accumulate.
size_t element_index(TensorType type) {
  if (type == TensorType::kF32) return 0;
  return type == TensorType::kF16 ? 1 : 2;
}

struct Span {
  size_t begin = 0;
  size_t end = 0;
};

// The positions that token t sees.
Span visible(const AttentionArgs& args, size_t t) {
  const size_t end = args.first_position + t + 1;
  const bool cut = args.window != 0 && end > args.window;
  return {.begin = cut ? end - args.window : 0, .end = end};
}

// Blocks that the tokens of the call see between them.
Span visible_blocks(const AttentionArgs& args, size_t first_token, size_t last_token) {
  return {.begin = visible(args, first_token).begin / kAttentionBlock,
          .end = div_up(visible(args, last_token).end, kAttentionBlock)};
}

size_t group_heads(const AttentionArgs& args) { return args.n_heads / args.cache.n_kv_heads; }

// A state that no block has joined yet, of one query head. A sink comes before all blocks: its own
// exp(score - max) is 1, and it adds no values.
void start_state(const AttentionArgs& args, size_t head, Isa isa, float* state) {
  kernels(isa).start(state, args.cache.head_dim);
  if (args.sinks == nullptr) return;
  state[0] = args.sinks[head];
  state[1] = 1.0f;
}

bool is_split(const AttentionArgs& args) { return args.n_tokens <= kSplitTokens; }

// Tokens of one item of a call that is cut by tokens.
size_t tile_tokens(const AttentionArgs& args) {
  return std::max<size_t>(1, kMaxRows / group_heads(args));
}

struct alignas(64) ScoreArea {
  std::array<float, kMaxRows * kAttentionBlock> values;
};

// Rows of one KV head against one block, collected until there are enough for a pass.
class BlockPass {
 public:
  BlockPass(const AttentionArgs& args, size_t kv_head, size_t block, Isa isa)
      : args_(args), isa_(isa), block_begin_(block * kAttentionBlock) {
    const KvCache& cache = args.cache;
    const size_t first = kv_head * cache.capacity + block_begin_;
    k_ = cache.k + first * row_bytes(cache.k_type, cache.head_dim);
    v_ = cache.v + first * row_bytes(cache.v_type, cache.head_dim);
  }

  [[nodiscard]] bool sees(size_t token) const {
    const Span span = visible(args_, token);
    return span.begin < block_begin_ + kAttentionBlock && span.end > block_begin_;
  }

  void add(size_t token, size_t head, float* partial) {
    const Span span = visible(args_, token);
    const size_t begin = std::max(span.begin, block_begin_);
    const size_t end = std::min(span.end, block_begin_ + kAttentionBlock);
    rows_[n_rows_++] = {.q = args_.q + token * args_.q_stride + head * args_.cache.head_dim,
                        .partial = partial,
                        .begin = begin - block_begin_,
                        .end = end - block_begin_};
    if (n_rows_ == kMaxRows) run();
  }

  void run() {
    if (n_rows_ == 0) return;
    const BlockJob job = {.k = k_,
                          .v = v_,
                          .head_dim = args_.cache.head_dim,
                          .scale = args_.scale,
                          .softcap = args_.softcap,
                          .rows = rows_.data(),
                          .n_rows = n_rows_,
                          .scores = scores_.values.data()};
    const AttentionKernels& k = kernels(isa_);
    k.score[element_index(args_.cache.k_type)](job);
    k.softmax(job);
    k.accumulate[element_index(args_.cache.v_type)](job);
    n_rows_ = 0;
  }

 private:
  const AttentionArgs& args_;
  Isa isa_;
  size_t block_begin_;
  const std::byte* k_;
  const std::byte* v_;
  std::array<BlockRow, kMaxRows> rows_;
  size_t n_rows_ = 0;
  ScoreArea scores_;
};

// Where split calls leave the partial result of (block, token, head).
float* split_partial(const AttentionArgs& args, size_t block, size_t token, size_t head) {
  const size_t index = (block * args.n_tokens + token) * args.n_heads + head;
  return reinterpret_cast<float*>(args.scratch.data()) +
         index * partial_floats(args.cache.head_dim);
}

void run_split_item(const AttentionArgs& args, size_t item, Isa isa) {
  const Span blocks = visible_blocks(args, 0, args.n_tokens - 1);
  const size_t n_blocks = blocks.end - blocks.begin;
  const size_t kv_head = item / n_blocks;
  const size_t block = blocks.begin + item % n_blocks;
  const size_t group = group_heads(args);
  BlockPass pass(args, kv_head, block, isa);
  for (size_t t = 0; t < args.n_tokens; ++t) {
    if (!pass.sees(t)) continue;
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      pass.add(t, head, split_partial(args, block - blocks.begin, t, head));
    }
  }
  pass.run();
}

// One item of a call cut by tokens: a tile of tokens, some of the heads of one KV head.
class TokenTile {
 public:
  TokenTile(const AttentionArgs& args, size_t item, Isa isa)
      : args_(args),
        isa_(isa),
        group_(group_heads(args)),
        stride_(partial_floats(args.cache.head_dim)) {
    const size_t tokens = tile_tokens(args);
    kv_head_ = item % args.cache.n_kv_heads;
    const size_t tile = item / args.cache.n_kv_heads;
    tokens_ = {.begin = tile * tokens, .end = std::min((tile + 1) * tokens, args.n_tokens)};
  }

  // Groups wider than a pass (one KV head for dozens of query heads) go in several.
  void run() {
    for (size_t head = 0; head < group_; head += kMaxRows) {
      run_heads({.begin = head, .end = std::min(head + kMaxRows, group_)});
    }
  }

 private:
  [[nodiscard]] size_t head_of(Span heads, size_t row) const {
    return kv_head_ * group_ + heads.begin + row % (heads.end - heads.begin);
  }
  [[nodiscard]] float* partial(size_t row) { return areas_.partials.data() + row * stride_; }
  [[nodiscard]] float* state(size_t row) { return areas_.states.data() + row * stride_; }

  void run_heads(Span heads) {
    const AttentionKernels& k = kernels(isa_);
    const size_t head_dim = args_.cache.head_dim;
    const size_t per_token = heads.end - heads.begin;
    const size_t n_rows = (tokens_.end - tokens_.begin) * per_token;
    for (size_t row = 0; row < n_rows; ++row) {
      start_state(args_, head_of(heads, row), isa_, state(row));
    }
    const Span blocks = visible_blocks(args_, tokens_.begin, tokens_.end - 1);
    for (size_t block = blocks.begin; block < blocks.end; ++block) {
      BlockPass pass(args_, kv_head_, block, isa_);
      for (size_t row = 0; row < n_rows; ++row) {
        const size_t token = tokens_.begin + row / per_token;
        const size_t head = head_of(heads, row);
        if (pass.sees(token)) pass.add(token, head, partial(row));
      }
      pass.run();
      for (size_t row = 0; row < n_rows; ++row) {
        if (pass.sees(tokens_.begin + row / per_token)) k.merge(state(row), partial(row), head_dim);
      }
    }
    for (size_t row = 0; row < n_rows; ++row) {
      const size_t token = tokens_.begin + row / per_token;
      const size_t head = head_of(heads, row);
      k.finish(state(row), args_.out + token * args_.out_stride + head * head_dim, head_dim);
    }
  }

  struct alignas(64) Areas {
    std::array<float, kMaxRows * partial_floats(kMaxHeadDim)> partials;
    std::array<float, kMaxRows * partial_floats(kMaxHeadDim)> states;
  };

  const AttentionArgs& args_;
  Isa isa_;
  size_t group_;
  size_t stride_;
  size_t kv_head_ = 0;
  Span tokens_;
  Areas areas_;
};

}  // namespace

bool kv_type_supported(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

size_t attention_scratch_bytes(const AttentionNeed& need) {
  // Calls of fewer tokens need less: the partial results are per token.
  const size_t tokens = std::min(need.max_tokens, kSplitTokens);
  const size_t blocks = div_up(std::max<size_t>(need.max_positions, 1), kAttentionBlock);
  return blocks * tokens * need.n_heads * partial_floats(need.head_dim) * sizeof(float);
}

size_t attention_items(const AttentionArgs& args) {
  if (!is_split(args)) {
    return div_up(args.n_tokens, tile_tokens(args)) * args.cache.n_kv_heads;
  }
  const Span blocks = visible_blocks(args, 0, args.n_tokens - 1);
  return (blocks.end - blocks.begin) * args.cache.n_kv_heads;
}

void attention_run_item(const AttentionArgs& args, size_t item, Isa isa) {
  if (is_split(args)) {
    run_split_item(args, item, isa);
  } else {
    TokenTile(args, item, isa).run();
  }
}

void attention_run(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  const size_t n = attention_items(args);
  if (is_split(args)) {
    // Neighbouring blocks, which lie one after the other in memory.
    for (size_t item = n * thread / n_threads; item < n * (thread + 1) / n_threads; ++item) {
      attention_run_item(args, item, isa);
    }
    return;
  }
  // Later tokens see more: dealing the items to and fro evens that out.
  for (size_t round = 0; round * n_threads < n; ++round) {
    const size_t place = round % 2 == 0 ? thread : n_threads - 1 - thread;
    const size_t item = round * n_threads + place;
    if (item < n) attention_run_item(args, item, isa);
  }
}

void attention_merge(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  if (!is_split(args)) return;
  const AttentionKernels& k = kernels(isa);
  const size_t head_dim = args.cache.head_dim;
  const size_t first_block = visible_blocks(args, 0, args.n_tokens - 1).begin;
  const size_t n = args.n_tokens * args.n_heads;
  alignas(64) std::array<float, partial_floats(kMaxHeadDim)> state;
  for (size_t i = n * thread / n_threads; i < n * (thread + 1) / n_threads; ++i) {
    const size_t token = i / args.n_heads;
    const size_t head = i % args.n_heads;
    const Span blocks = visible_blocks(args, token, token);
    start_state(args, head, isa, state.data());
    for (size_t block = blocks.begin; block < blocks.end; ++block) {
      k.merge(state.data(), split_partial(args, block - first_block, token, head), head_dim);
    }
    k.finish(state.data(), args.out + token * args.out_stride + head * head_dim, head_dim);
  }
}

}  // namespace godwit::cpu
