#include "backend/cpu/context.h"

#include <algorithm>

#include "base/bits.h"

namespace godwit::cpu {
namespace {

using backend::ContextSettings;
using program::Program;

constexpr uint64_t kCacheLine = 64;

size_t widest_buffer(const Program& program) {
  size_t widest = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (i != program.logits.value) widest = std::max(widest, size_t{program.buffers[i].width});
  }
  // Router logits lie where products do.
  program::for_each_step(program, [&](const program::Step& step) {
    const auto* route = std::get_if<program::Route>(&step.operation);
    if (route != nullptr) widest = std::max(widest, size_t{route->weight.rows});
  });
  return widest;
}

// Hands out pieces of an arena; run once without one to learn the size.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  std::span<std::byte> take(uint64_t bytes) {
    const uint64_t at = used_;
    used_ += round_up(bytes, kCacheLine);
    return base_ == nullptr ? std::span<std::byte>{} : std::span<std::byte>{base_ + at, bytes};
  }
  BufferView take_floats(size_t rows, size_t width) {
    // Rows of whole cache lines, so that no two threads write the same one.
    const size_t stride = round_up(width, kCacheLine / sizeof(float));
    return {.data = reinterpret_cast<float*>(take(rows * stride * sizeof(float)).data()),
            .width = width,
            .stride = stride};
  }
  [[nodiscard]] uint64_t used() const { return used_; }

 private:
  std::byte* base_;
  uint64_t used_ = 0;
};

InputArea carve_input(Carver& carver, size_t rows, size_t width) {
  const auto planes = [&](ActivationKind kind, size_t block) {
    return carver.take(
        activation_bytes(kind, activation_planes(kind) * rows, round_up(width, block)));
  };
  return {.normed = carver.take(rows * round_up(width, 16) * sizeof(float)),
          .q8_32 = planes(ActivationKind::kQ8Block32, 32),
          .q8_256 = planes(ActivationKind::kQ8Block256, 256)};
}

// y of two planes over one thread's rows, for the widest matrix of the layers or the output.
uint64_t plane_sum_bytes(const Program& program, const ContextSettings& settings, size_t widest,
                         size_t n_threads) {
  const auto share = [&](size_t rows) {
    return div_up(div_up(rows, kTileRows), n_threads) * kTileRows;
  };
  return 2 * sizeof(float) *
         std::max(settings.max_rows * share(widest),
                  settings.max_logit_rows * share(program.n_vocab));
}

uint64_t attention_bytes(const Program& program, const ContextSettings& settings, size_t block) {
  uint64_t most = 0;
  program::for_each_step(program, [&](const program::Step& step) {
    const auto* attend = std::get_if<program::Attend>(&step.operation);
    if (attend == nullptr) return;
    most = std::max<uint64_t>(most, attention_scratch_bytes({.n_heads = attend->n_heads,
                                                             .n_kv_heads = attend->n_kv_heads,
                                                             .head_dim = attend->head_dim,
                                                             .max_positions = settings.n_positions,
                                                             .max_tokens = settings.max_rows,
                                                             .block = block}));
  });
  return most;
}

// The widest of all steps with experts.
struct ExpertSizes {
  size_t n_experts = 0;
  size_t n_used = 0;
  size_t input = 0;     // columns
  size_t output = 0;    // rows of one matrix
  size_t products = 0;  // of all slots of a row

  void add(const program::Routing& routing, const program::ExpertMatrix& matrix) {
    n_experts = std::max<size_t>(n_experts, matrix.n_experts);
    n_used = std::max<size_t>(n_used, routing.n_used);
    input = std::max<size_t>(input, matrix.weight.cols);
    output = std::max<size_t>(output, matrix.rows());
  }
};

ExpertSizes expert_sizes(const Program& program) {
  ExpertSizes sizes;
  program::for_each_step(program, [&](const program::Step& step) {
    if (const auto* up = std::get_if<program::ExpertGatedUp>(&step.operation)) {
      sizes.add(up->routing, up->gate);
      sizes.add(up->routing, up->up);
    } else if (const auto* down = std::get_if<program::ExpertDownAdd>(&step.operation)) {
      sizes.add(down->routing, down->down);
      sizes.products =
          std::max<size_t>(sizes.products, down->routing.n_slots() * down->down.rows());
    }
  });
  return sizes;
}

ExpertArea carve_experts(Carver& carver, const ExpertSizes& sizes, size_t max_rows) {
  const size_t n_choices = max_rows * sizes.n_used;
  const size_t rows = std::min(kExpertRows, max_rows);
  const size_t input = round_up(sizes.input, 256);
  const auto begins = carver.take((sizes.n_experts + 1) * sizeof(uint32_t));
  const auto choices = carver.take(n_choices * sizeof(ExpertRow));
  ExpertArea area;
  area.groups = {.begins = {reinterpret_cast<uint32_t*>(begins.data()), sizes.n_experts + 1},
                 .rows = {reinterpret_cast<ExpertRow*>(choices.data()), n_choices}};
  for (const ActivationKind kind :
       {ActivationKind::kF32, ActivationKind::kQ8Block32, ActivationKind::kQ8Block256}) {
    area.gathered[static_cast<size_t>(kind)] = carver.take(gathered_bytes(kind, rows, input));
  }
  area.first = carver.take_floats(rows, sizes.output);
  area.second = carver.take_floats(rows, sizes.output);
  return area;
}

// What walk_recurrent.cpp needs for one key head and the rows of a chunk.
size_t head_floats(const program::State& state) {
  return DeltaHeadArea::floats(state.head_dim, state.n_heads / state.n_key_heads());
}

// KV first, then states, so that the share of each is a difference of the carver's positions.
struct Layout {
  uint64_t kv_bytes = 0;
  uint64_t state_bytes = 0;
};

Layout carve(Carver& carver, const Program& program, const ContextSettings& settings,
             const Execution& execution, Context* context) {
  const size_t n_threads = execution.n_threads;
  Layout layout;
  std::vector<KvCache> kvs;
  for (const program::Kv& kv : program.kvs) {
    const auto bytes = [&](TensorType type) {
      return kv_bytes(type, kv.n_kv_heads, kv.head_dim, settings.n_positions);
    };
    kvs.push_back({.k = carver.take(bytes(settings.k_type)).data(),
                   .v = carver.take(bytes(settings.v_type)).data(),
                   .k_type = settings.k_type,
                   .v_type = settings.v_type,
                   .n_kv_heads = kv.n_kv_heads,
                   .head_dim = kv.head_dim,
                   .capacity = kv_capacity(settings.n_positions)});
  }
  layout.kv_bytes = carver.used();
  std::vector<DeltaState> states;
  size_t head_area = 0;
  for (const program::State& state : program.states) {
    const auto floats = [&](uint64_t n) {
      return std::span<float>(reinterpret_cast<float*>(carver.take(n * sizeof(float)).data()), n);
    };
    const size_t n_tentative = settings.max_tentative_rows;
    const std::span<float> rows =
        floats(state.conv_floats() + uint64_t{state.channels} * n_tentative);
    const std::span<float> matrix = floats(state.matrix_floats());
    states.push_back({.rows = rows, .matrix = matrix, .logs = {}});
    const size_t d = state.head_dim;
    const size_t n_decays = state.n_heads * kDeltaChunk;
    for (size_t i = 0; i < 1 + div_up(n_tentative, kDeltaChunk); ++i) {
      const std::span<float> keys = floats(state.n_key_heads() * d * kDeltaChunk);
      const std::span<float> changes = floats(state.n_heads * kDeltaChunk * d);
      auto* const decays = reinterpret_cast<double*>(carver.take(n_decays * sizeof(double)).data());
      states.back().logs.push_back(
          {.keys = keys, .changes = changes, .log_decays = {decays, n_decays}});
    }
    head_area = std::max(head_area, head_floats(state));
  }
  layout.state_bytes = carver.used() - layout.kv_bytes;

  std::vector<BufferView> buffers;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const size_t width = program.buffers[i].width;
    if (i == program.logits.value) {
      BufferView logits = carver.take_floats(1, settings.max_logit_rows * width);
      buffers.push_back({.data = logits.data, .width = width, .stride = width});
    } else {
      buffers.push_back(carver.take_floats(settings.max_rows, width));
    }
  }
  const size_t widest = widest_buffer(program);
  const InputArea shared = carve_input(carver, settings.max_rows, widest);
  std::vector<InputArea> own;
  own.reserve(n_threads);
  for (size_t i = 0; i < n_threads; ++i) own.push_back(carve_input(carver, 1, widest));
  const BufferView gate = carver.take_floats(settings.max_rows, widest);
  std::vector<std::span<std::byte>> plane_sums;
  plane_sums.reserve(n_threads);
  for (size_t i = 0; i < n_threads; ++i) {
    plane_sums.push_back(carver.take(plane_sum_bytes(program, settings, widest, n_threads)));
  }
  const BufferView turned_q = carver.take_floats(settings.max_rows, widest);
  std::vector<BufferView> angles;
  angles.reserve(program.ropes.size());
  for (const program::Rope& rope : program.ropes) {
    angles.push_back(carver.take_floats(settings.max_rows, rope.n_rot));
  }
  std::vector<std::span<float>> heads;
  heads.reserve(n_threads);
  for (size_t i = 0; i < n_threads; ++i) {
    const BufferView area = carver.take_floats(1, head_area);
    heads.push_back({area.data, area.width});
  }
  std::vector<ExpertArea> experts;
  const ExpertSizes sizes = expert_sizes(program);
  for (size_t i = 0; i < n_threads && sizes.n_experts > 0; ++i) {
    experts.push_back(carve_experts(carver, sizes, settings.max_rows));
  }
  const BufferView expert_products =
      carver.take_floats(sizes.products > 0 ? settings.max_rows : 0, sizes.products);
  const std::span<std::byte> attention =
      carver.take(attention_bytes(program, settings, execution.attention_block));

  if (context != nullptr) {
    context->settings = settings;
    context->attention_block = execution.attention_block;
    context->buffers = std::move(buffers);
    context->kvs = std::move(kvs);
    context->states = std::move(states);
    context->heads = std::move(heads);
    context->shared_input = shared;
    context->own_inputs = std::move(own);
    context->gate = gate;
    context->plane_sums = std::move(plane_sums);
    context->turned_q = turned_q;
    context->angles = std::move(angles);
    context->attention = attention;
    context->experts = std::move(experts);
    context->expert_products = expert_products;
    context->logit_rows.reserve(settings.max_rows);
  }
  return layout;
}

}  // namespace

backend::MemoryNeed Context::need(const Program& program, const ContextSettings& settings,
                                  const Execution& execution) {
  Carver carver(nullptr);
  const Layout layout = carve(carver, program, settings, execution, nullptr);
  return {.weight_bytes = 0,
          .expert_bytes = 0,
          .kv_bytes = layout.kv_bytes,
          .state_bytes = layout.state_bytes,
          .scratch_bytes = carver.used() - layout.kv_bytes - layout.state_bytes};
}

Result<std::unique_ptr<Context>> Context::create(const Program& program,
                                                 const ContextSettings& settings,
                                                 const Execution& execution) {
  Carver measure(nullptr);
  carve(measure, program, settings, execution, nullptr);
  Result<AlignedBuffer> arena = AlignedBuffer::create(measure.used(), 4096);
  if (!arena) return fail(std::move(arena).error().with("context"));
  auto context = std::make_unique<Context>();
  context->arena_ = std::move(*arena);
  Carver carver(context->arena_.data());
  carve(carver, program, settings, execution, context.get());
  return context;
}

}  // namespace godwit::cpu
