#include "backend/cuda/context.h"

#include <algorithm>

#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/weights.h"

namespace godwit::cuda {
namespace {

using backend::ContextSettings;
using program::Program;

// Hands out parts of one allocation; without one it only counts.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}

  template <class T>
  T* take(uint64_t n) {
    std::byte* const p = base_ == nullptr ? nullptr : base_ + at_;
    at_ += (n * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(p);
  }
  [[nodiscard]] uint64_t taken() const { return at_; }

 private:
  std::byte* base_;
  uint64_t at_ = 0;
};

uint64_t widest_buffer(const Program& program) {
  uint64_t widest = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (i != program.logits.value) widest = std::max(widest, padded(program.buffers[i].width));
  }
  return widest;
}

void place_buffers(const Program& program, Arena& arena, Context& context) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const uint64_t width = program.buffers[i].width;
    const uint64_t rows =
        i == program.logits.value ? context.settings.max_logit_rows : context.settings.max_rows;
    // Logits go to the host in one piece.
    const uint64_t stride = i == program.logits.value ? width : padded(width);
    context.buffers.push_back(
        {.data = arena.take<float>(rows * stride), .width = width, .stride = stride});
  }
}

void place_scratch(const Program& program, Arena& arena, Context& context) {
  const ContextSettings& settings = context.settings;
  Scratch& scratch = context.scratch;
  scratch.widest = widest_buffer(program);
  scratch.n_splits = (settings.n_positions + kSplitPositions - 1) / kSplitPositions;
  uint64_t values = 0;
  uint64_t heads = 0;
  program::for_each_step(program, [&](const program::Step& step) {
    const auto* attend = std::get_if<program::Attend>(&step.operation);
    if (attend == nullptr) return;
    values = std::max(values, uint64_t{attend->n_heads} * attend->head_dim);
    heads = std::max(heads, uint64_t{attend->n_heads});
  });
  const uint64_t areas = kGroupRows * scratch.n_splits;
  scratch.split_values = arena.take<float>(areas * values);
  scratch.split_sums = arena.take<float2>(areas * heads);
  const uint64_t wide = settings.max_rows * scratch.widest;
  scratch.turned_q = arena.take<float>(wide);
  scratch.wide = arena.take<float>(wide);
  scratch.high = arena.take<uint16_t>(wide);
  scratch.low = arena.take<uint16_t>(wide);
  scratch.row_scales = arena.take<float>(settings.max_rows);
  context.inputs = arena.take<RowInput>(settings.max_rows);
  context.logit_rows = arena.take<uint32_t>(settings.max_logit_rows);
}

// RoPE tables count as scratch, KV by itself.
uint64_t place_kv(const Program& program, Arena& arena, Context& context) {
  const ContextSettings& settings = context.settings;
  const uint64_t before = arena.taken();
  for (const program::Kv& kv : program.kvs) {
    KvCache cache{.layout = kv_layout(kv, settings.k_type, settings.v_type, settings.n_positions),
                  .k_type = settings.k_type,
                  .v_type = settings.v_type};
    cache.data = arena.take<std::byte>(cache.layout.layer_bytes());
    context.kvs.push_back(cache);
  }
  return arena.taken() - before;
}

void place_ropes(const Program& program, Arena& arena, Context& context) {
  for (const program::Rope& rope : program.ropes) {
    const uint64_t n = context.settings.n_positions * (rope.n_rot / 2);
    context.ropes.push_back({.data = arena.take<float2>(n), .n_rot = rope.n_rot});
  }
}

struct Sizes {
  uint64_t kv = 0;
  uint64_t total = 0;
};

Sizes place_all(const Program& program, Arena arena, Context& context) {
  place_buffers(program, arena, context);
  place_scratch(program, arena, context);
  place_ropes(program, arena, context);
  const uint64_t kv = place_kv(program, arena, context);
  return {.kv = kv, .total = arena.taken()};
}

uint64_t pinned_bytes(const Program& program, const ContextSettings& settings) {
  return settings.max_rows * sizeof(RowInput) +
         settings.max_logit_rows * (sizeof(uint32_t) + program.n_vocab * sizeof(float)) + 1024;
}

Status fill_rope(const program::Rope& rope, uint64_t n_positions, const RopeTable& table) {
  const uint32_t half = rope.n_rot / 2;
  if (half == 0) return {};
  check(rope.frequencies.size() == half, "a frequency for each pair of dimensions");
  Result<DeviceMemory> frequencies =
      DeviceMemory::allocate(half * sizeof(double), "RoPE frequencies");
  if (!frequencies) return fail(std::move(frequencies).error());
  if (Status s = status_of(cudaMemcpy(frequencies->data(), rope.frequencies.data(),
                                      half * sizeof(double), cudaMemcpyHostToDevice),
                           "copying RoPE frequencies");
      !s) {
    return s;
  }
  if (Status s = status_of(
          enqueue_rope_table(frequencies->as<double>(), rope.magnitude, n_positions, table),
          "making a RoPE table");
      !s) {
    return s;
  }
  return status_of(cudaDeviceSynchronize(), "making a RoPE table");
}

}  // namespace

backend::MemoryNeed Context::need(const Program& program, const ContextSettings& settings) {
  Context counted;
  counted.settings = settings;
  const Sizes sizes = place_all(program, Arena(nullptr), counted);
  return {.weight_bytes = 0, .kv_bytes = sizes.kv, .scratch_bytes = sizes.total - sizes.kv};
}

Result<std::unique_ptr<Context>> Context::create(const Program& program,
                                                 const ContextSettings& settings) {
  const backend::MemoryNeed need = Context::need(program, settings);
  auto context = std::make_unique<Context>();
  context->settings = settings;
  // Zeros: what lies beyond the length must be finite, as must the padding of activations.
  Result<DeviceMemory> memory =
      DeviceMemory::zeroed(need.kv_bytes + need.scratch_bytes, "a context");
  if (!memory) return fail(std::move(memory).error());
  context->memory_ = std::move(*memory);
  place_all(program, Arena(context->memory_.data()), *context);

  Result<PinnedMemory> pinned =
      PinnedMemory::allocate(pinned_bytes(program, settings), "a context's host copies");
  if (!pinned) return fail(std::move(pinned).error());
  context->pinned_ = std::move(*pinned);
  Arena host(context->pinned_.data());
  context->host_inputs = host.take<RowInput>(settings.max_rows);
  context->host_logit_rows = host.take<uint32_t>(settings.max_logit_rows);
  context->host_logits = host.take<float>(settings.max_logit_rows * program.n_vocab);

  for (size_t i = 0; i < program.ropes.size(); ++i) {
    if (Status s = fill_rope(program.ropes[i], settings.n_positions, context->ropes[i]); !s) {
      return fail(s.error());
    }
  }
  return context;
}

}  // namespace godwit::cuda
