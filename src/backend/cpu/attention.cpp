#include "backend/cpu/attention.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cpu/attention_block.h"

namespace godwit::cpu {
namespace {

// Up to so many tokens, a call is cut by blocks of positions and merged in a second phase; above,
// by tokens, and each item goes through its blocks itself. The results are the same bits.
constexpr size_t kSplitTokens = 8;
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

struct Span {
  size_t begin = 0;
  size_t end = 0;

  [[nodiscard]] size_t size() const { return end - begin; }
};

// The positions that token t sees.
Span visible(const AttentionArgs& args, size_t t) {
  const size_t end = args.first_position + t + 1;
  const bool cut = args.window != 0 && end > args.window;
  return {.begin = cut ? end - args.window : 0, .end = end};
}

// Of the first token, and so of all of a part (parts_of).
size_t block_of(const AttentionArgs& args) {
  return attention_block(args.first_position, args.block);
}

// Blocks that the tokens of a part see between them.
Span visible_blocks(const AttentionArgs& args, size_t first_token, size_t last_token) {
  return {.begin = visible(args, first_token).begin / block_of(args),
          .end = div_up(visible(args, last_token).end, block_of(args))};
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

// Where split calls leave the partial result of (block, token, head).
size_t partial_index(const AttentionArgs& args, size_t block, size_t token, size_t head) {
  return ((block * args.n_tokens + token) * args.n_heads + head) *
         partial_floats(args.cache.head_dim);
}
float* split_partial(const AttentionArgs& args, size_t block, size_t token, size_t head) {
  return reinterpret_cast<float*>(args.scratch.data()) + partial_index(args, block, token, head);
}

// Calls run(part) for the tokens of a call whose blocks are of one length, as calls of their own,
// with scratch of their own if the call is split.
template <class Run>
void for_parts(const AttentionArgs& args, const Run& run) {
  AttentionArgs part = args;
  for (size_t t = 0; t < args.n_tokens; t += part.n_tokens) {
    const size_t position = args.first_position + t;
    part.q = args.q + t * args.q_stride;
    part.out = args.out + t * args.out_stride;
    part.first_position = position;
    part.n_tokens = std::min(args.n_tokens - t, next_block_change(position, args.block) - position);
    run(part);
    if (!is_split(args) || t + part.n_tokens == args.n_tokens) continue;
    const size_t n_blocks = visible_blocks(part, 0, part.n_tokens - 1).size();
    part.scratch = part.scratch.subspan(partial_index(part, n_blocks, 0, 0) * sizeof(float));
  }
}

struct alignas(64) ScoreArea {
  std::array<float, kMaxRows * kMaxAttentionBlock> values;
};

// A block of positions of a KV head.
struct BlockPlace {
  size_t kv_head = 0;
  size_t block = 0;
};

// Rows of one KV head against one block, collected until there are enough for a pass. `next` is
// what this thread will want after it.
class BlockPass {
 public:
  BlockPass(const AttentionArgs& args, BlockPlace place, BlockPlace next, Isa isa)
      : args_(args),
        isa_(isa),
        block_(block_of(args)),
        place_(place),
        next_(next),
        block_begin_(place.block * block_) {}

  [[nodiscard]] bool sees(size_t token) const {
    const Span span = visible(args_, token);
    return span.begin < block_begin_ + block_ && span.end > block_begin_;
  }

  void add(size_t token, size_t head, float* partial) {
    const Span span = visible(args_, token);
    const size_t begin = std::max(span.begin, block_begin_);
    const size_t end = std::min(span.end, block_begin_ + block_);
    rows_[n_rows_++] = {.q = args_.q + token * args_.q_stride + head * args_.cache.head_dim,
                        .partial = partial,
                        .begin = begin - block_begin_,
                        .end = end - block_begin_};
    if (n_rows_ == kMaxRows) run();
  }

  // While keys are read, and scores made weights, values are fetched; while values are, the next
  // keys.
  void run() {
    if (n_rows_ == 0) return;
    const KvCache& cache = args_.cache;
    const auto values = divided(ahead(cache.v, cache.v_type, place_));
    const BlockJob job = {.k = at(cache.k, cache.k_type, place_),
                          .v = at(cache.v, cache.v_type, place_),
                          .head_dim = cache.head_dim,
                          .block = block_,
                          .scale = args_.scale,
                          .softcap = args_.softcap,
                          .rows = rows_.data(),
                          .n_rows = n_rows_,
                          .scores = scores_.values.data(),
                          .while_scoring = values.first,
                          .while_normalizing = values.second,
                          .while_accumulating = ahead(cache.k, cache.k_type, next_)};
    const AttentionKernels& k = kernels(isa_);
    k.score[static_cast<size_t>(kv_element(cache.k_type))](job);
    k.softmax(job);
    k.accumulate[static_cast<size_t>(kv_element(cache.v_type))](job);
    n_rows_ = 0;
  }

 private:
  [[nodiscard]] const std::byte* at(const std::byte* data, TensorType type, BlockPlace p) const {
    const size_t first = p.kv_head * args_.cache.capacity + p.block * block_;
    return data + first * row_bytes(type, args_.cache.head_dim);
  }
  // In proportion to what scoring and normalizing take.
  [[nodiscard]] std::pair<Ahead, Ahead> divided(const Ahead& all) const {
    const size_t first = all.n_lines - all.n_lines / (1 + args_.cache.head_dim / 32);
    return {{.bytes = all.bytes, .n_lines = first},
            {.bytes = static_cast<const std::byte*>(all.bytes) + 64 * first,
             .n_lines = all.n_lines - first}};
  }
  // What of a block lies before the end of what the last token sees.
  [[nodiscard]] Ahead ahead(const std::byte* data, TensorType type, BlockPlace p) const {
    const size_t end = visible(args_, args_.n_tokens - 1).end;
    if (p.block * block_ >= end) return {};
    const size_t n = std::min(block_, end - p.block * block_);
    return {.bytes = at(data, type, p),
            .n_lines = div_up(n * row_bytes(type, args_.cache.head_dim), 64)};
  }

  const AttentionArgs& args_;
  Isa isa_;
  size_t block_;
  BlockPlace place_;
  BlockPlace next_;
  size_t block_begin_;
  std::array<BlockRow, kMaxRows> rows_;
  size_t n_rows_ = 0;
  ScoreArea scores_;
};

// Items of a split call: (KV head, block), neighbours in memory one after the other.
class SplitItems {
 public:
  explicit SplitItems(const AttentionArgs& args)
      : args_(args),
        blocks_(visible_blocks(args, 0, args.n_tokens - 1)),
        seen_{.begin = visible(args, 0).begin, .end = visible(args, args.n_tokens - 1).end} {}

  [[nodiscard]] size_t count() const { return blocks_.size() * args_.cache.n_kv_heads; }
  [[nodiscard]] BlockPlace place(size_t item) const {
    return {.kv_head = item / blocks_.size(), .block = blocks_.begin + item % blocks_.size()};
  }
  [[nodiscard]] size_t first_block() const { return blocks_.begin; }

  // The items of a thread: those whose middle lies in its share of all positions. The ends of what
  // is seen may be parts of blocks.
  [[nodiscard]] Span share(size_t thread, size_t n_threads) const {
    return {.begin = first_of(thread, n_threads), .end = first_of(thread + 1, n_threads)};
  }

  // Positions before an item.
  [[nodiscard]] size_t positions_before(size_t item) const {
    const BlockPlace p = place(item);
    const size_t begin = std::clamp(p.block * block_of(args_), seen_.begin, seen_.end);
    return p.kv_head * seen_.size() + begin - seen_.begin;
  }

 private:
  [[nodiscard]] size_t first_of(size_t thread, size_t n_threads) const {
    const size_t all = seen_.size() * args_.cache.n_kv_heads;
    Span search{.begin = 0, .end = count()};
    while (search.begin < search.end) {
      const size_t item = search.begin + search.size() / 2;
      const size_t twice_middle = positions_before(item) + positions_before(item + 1);
      if (twice_middle * n_threads < 2 * all * thread) {
        search.begin = item + 1;
      } else {
        search.end = item;
      }
    }
    return search.begin;
  }

  const AttentionArgs& args_;
  Span blocks_;
  Span seen_;
};

void run_split(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  const SplitItems items(args);
  const size_t group = group_heads(args);
  const Span share = items.share(thread, n_threads);
  for (size_t item = share.begin; item < share.end; ++item) {
    const BlockPlace place = items.place(item);
    const BlockPlace next = items.place(std::min(item + 1, share.end - 1));
    BlockPass pass(args, place, next, isa);
    for (size_t t = 0; t < args.n_tokens; ++t) {
      if (!pass.sees(t)) continue;
      for (size_t head = place.kv_head * group; head < (place.kv_head + 1) * group; ++head) {
        pass.add(t, head, split_partial(args, place.block - items.first_block(), t, head));
      }
    }
    pass.run();
  }
}

// Tokens of one item of a call that is cut by tokens: as many as fill a pass, unless there would be
// too few items for threads to have equal shares.
size_t tile_tokens(const AttentionArgs& args, size_t n_threads) {
  size_t tokens = std::max<size_t>(1, kMaxRows / group_heads(args));
  while (tokens > 1 && div_up(args.n_tokens, tokens) * args.cache.n_kv_heads < 4 * n_threads) {
    tokens /= 2;
  }
  return tokens;
}

// One item of a call cut by tokens: a tile of tokens, some of the heads of one KV head.
class TokenTile {
 public:
  TokenTile(const AttentionArgs& args, size_t item, size_t tokens, Isa isa)
      : args_(args),
        isa_(isa),
        group_(group_heads(args)),
        stride_(partial_floats(args.cache.head_dim)) {
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
      const size_t next = std::min(block + 1, blocks.end - 1);
      BlockPass pass(args_, {kv_head_, block}, {kv_head_, next}, isa_);
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

void run_tiles(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  const size_t tokens = tile_tokens(args, n_threads);
  const size_t n = div_up(args.n_tokens, tokens) * args.cache.n_kv_heads;
  // Later tokens see more: dealing the items to and fro evens that out.
  for (size_t round = 0; round * n_threads < n; ++round) {
    const size_t place = round % 2 == 0 ? thread : n_threads - 1 - thread;
    const size_t item = round * n_threads + place;
    if (item < n) TokenTile(args, item, tokens, isa).run();
  }
}

// Heads that are merged side by side: each goes from block to block in order and waits for exp.
constexpr size_t kMergedHeads = 8;

struct alignas(64) MergeArea {
  std::array<float, kMergedHeads * partial_floats(kMaxHeadDim)> states;
};

// Heads [begin, end) of one token, at most kMergedHeads.
void merge_heads(const AttentionArgs& args, size_t token, Span heads, Isa isa) {
  const AttentionKernels& k = kernels(isa);
  const size_t head_dim = args.cache.head_dim;
  const size_t first_block = visible_blocks(args, 0, args.n_tokens - 1).begin;
  const Span blocks = visible_blocks(args, token, token);
  MergeArea area;
  const auto state = [&](size_t head) {
    return area.states.data() + (head - heads.begin) * partial_floats(head_dim);
  };
  for (size_t head = heads.begin; head < heads.end; ++head) {
    start_state(args, head, isa, state(head));
  }
  for (size_t block = blocks.begin; block < blocks.end; ++block) {
    for (size_t head = heads.begin; head < heads.end; ++head) {
      k.merge(state(head), split_partial(args, block - first_block, token, head), head_dim);
    }
  }
  for (size_t head = heads.begin; head < heads.end; ++head) {
    k.finish(state(head), args.out + token * args.out_stride + head * head_dim, head_dim);
  }
}

void merge_part(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  const size_t n = args.n_tokens * args.n_heads;
  const size_t end = n * (thread + 1) / n_threads;
  for (size_t i = n * thread / n_threads; i < end;) {
    const size_t token = i / args.n_heads;
    const size_t head = i % args.n_heads;
    const size_t n_heads = std::min({kMergedHeads, args.n_heads - head, end - i});
    merge_heads(args, token, {.begin = head, .end = head + n_heads}, isa);
    i += n_heads;
  }
}

}  // namespace

size_t attention_scratch_bytes(const AttentionNeed& need) {
  // Calls of fewer tokens need less: the partial results are per token.
  const size_t tokens = std::min(need.max_tokens, kSplitTokens);
  const size_t blocks = most_attention_blocks(need.max_positions, need.block);
  return blocks * tokens * need.n_heads * partial_floats(need.head_dim) * sizeof(float);
}

void attention_run(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  const bool split = is_split(args);
  for_parts(args, [&](const AttentionArgs& part) {
    split ? run_split(part, thread, n_threads, isa) : run_tiles(part, thread, n_threads, isa);
  });
}

size_t attention_share_positions(const AttentionArgs& args, size_t thread, size_t n_threads) {
  size_t n = 0;
  for_parts(args, [&](const AttentionArgs& part) {
    const SplitItems items(part);
    const Span share = items.share(thread, n_threads);
    n += items.positions_before(share.end) - items.positions_before(share.begin);
  });
  return n;
}

void attention_merge(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa) {
  if (!is_split(args)) return;
  for_parts(args, [&](const AttentionArgs& part) { merge_part(part, thread, n_threads, isa); });
}

}  // namespace godwit::cpu
