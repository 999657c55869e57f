#include "backend/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "backend/kv_rounding.h"
#include "backend/reference/delta_rule.h"
#include "backend/reference/routing.h"
#include "backend/reference/state.h"
#include "backend/reference/steps.h"
#include "base/check.h"
#include "quant/formats.h"

namespace godwit::reference {
namespace {

using backend::ContextId;
using backend::ContextSettings;
using program::BufferId;
using program::Program;
using program::Row;

struct Context {
  ContextSettings settings;
  std::vector<Matrix> buffers;      // indexed by BufferId
  std::vector<KvCache> kvs;         // indexed by KvRef
  std::vector<DeltaStates> states;  // indexed by StateRef
  Matrix normed;                    // [max_rows, widest input]
  Matrix gate;
  Matrix queries;             // [max_rows, widest input], of heads whose gates have been left out
  std::vector<float> logits;  // [logit rows of the last run, n_vocab]
  size_t n_rows = 0;          // of the last run
  size_t n_logit_rows = 0;
};

// Runs the steps of one call over one context.
class Run {
 public:
  Run(const Program& program, std::span<const WeightView> weights, ThreadPool& pool,
      Context& context, std::span<const Row> rows)
      : program_(program), weights_(weights), pool_(pool), context_(context), rows_(rows) {}

  void step(const program::Step& s) {
    std::visit([this](const auto& operation) { execute(operation); }, s.operation);
  }

 private:
  Matrix& buffer(BufferId id) { return context_.buffers[id.value]; }
  const WeightView& weight(const program::WeightRef& ref) { return weights_[ref.id]; }

  // A step's input after its norm, if it has one.
  const Matrix& normed(BufferId in, const std::optional<program::RmsNorm>& n) {
    if (!n) return buffer(in);
    norm_rows(*n, buffer(in), context_.normed);
    return context_.normed;
  }

  // Each `weight.cols` values of a row by themselves.
  void norm_rows(const program::RmsNorm& n, const Matrix& x, Matrix& y) {
    y.width = x.width;
    std::vector<double> w(n.weight.cols);
    decode_weight_row(weight(n.weight), 0, w);
    for (size_t t = 0; t < rows_.size(); ++t) {
      for (size_t at = 0; at < x.width; at += w.size()) {
        rms_norm(x.row(t).subspan(at, w.size()), w, static_cast<double>(n.epsilon),
                 y.row(t).subspan(at, w.size()));
      }
    }
  }

  void multiply(const program::WeightRef& w, const std::optional<program::WeightRef>& bias,
                const Matrix& x, Matrix& y) {
    mat_mul({.weight = weight(w),
             .bias = bias ? &weight(*bias) : nullptr,
             .x = &x,
             .n_rows = rows_.size()},
            pool_, y);
  }

  void execute(const program::Embed& s) {
    for (size_t t = 0; t < rows_.size(); ++t) {
      const std::span<double> out = buffer(s.out).row(t);
      decode_weight_row(weight(s.table), static_cast<uint64_t>(rows_[t].token.value), out);
      for (double& value : out) value *= static_cast<double>(s.scale);
    }
  }

  void execute(const program::Norm& s) {
    for (size_t t = 0; t < rows_.size(); ++t) {
      std::span<double> out = buffer(s.out).row(t);
      for (const program::Norm::Part& part : s.parts) {
        std::vector<double> w(part.norm.weight.cols);
        decode_weight_row(weight(part.norm.weight), 0, w);
        rms_norm(buffer(part.in).row(t), w, static_cast<double>(part.norm.epsilon),
                 out.first(w.size()));
        out = out.subspan(w.size());
      }
    }
  }

  void execute(const program::NormProject& s) {
    const Matrix& x = normed(s.in, s.norm);
    for (const program::Projection& p : s.projections) {
      multiply(p.weight, p.bias, x, buffer(p.out));
    }
  }

  void execute(const program::Attend& s) {
    const Matrix& plain = s.gated ? without_gates(s) : buffer(s.q);
    if (s.q_norm) norm_rows(*s.q_norm, plain, context_.normed);
    if (s.k_norm) norm_rows(*s.k_norm, buffer(s.k), context_.gate);
    const Matrix& queries = s.q_norm ? context_.normed : plain;
    const Matrix& keys = s.k_norm ? context_.gate : buffer(s.k);
    store(s, keys);
    pool_.run([&](size_t thread) {
      for (size_t item = thread; item < rows_.size() * s.n_heads; item += pool_.size()) {
        attend_one(s, queries, item / s.n_heads, item % s.n_heads);
      }
    });
    if (s.gated) multiply_by_gates(s);
  }

  // [n_heads, 2, head_dim] to [n_heads, head_dim].
  const Matrix& without_gates(const program::Attend& s) {
    Matrix& queries = context_.queries;
    queries.width = size_t{s.n_heads} * s.head_dim;
    for (size_t t = 0; t < rows_.size(); ++t) {
      for (size_t h = 0; h < s.n_heads; ++h) {
        const auto q = buffer(s.q).row(t).subspan(2 * h * s.head_dim, s.head_dim);
        std::copy(q.begin(), q.end(), queries.row(t).subspan(h * s.head_dim).begin());
      }
    }
    return queries;
  }

  void multiply_by_gates(const program::Attend& s) {
    for (size_t t = 0; t < rows_.size(); ++t) {
      for (size_t i = 0; i < size_t{s.n_heads} * s.head_dim; ++i) {
        const size_t head = i / s.head_dim;
        const double gate = buffer(s.q).row(t)[(head + 1) * s.head_dim + i];
        buffer(s.out).row(t)[i] *= sigmoid(gate);
      }
    }
  }

  void execute(const program::Recurrent& s) {
    DeltaStates& states = context_.states[s.state.value];
    states.go_to(rows_.front().position.value);
    const DeltaLayer layer = delta_layer(s);
    for (size_t t = 0; t < rows_.size(); ++t) {
      if (rows_[t].tentative) states.before.push_back(states.now);
      const DeltaRow row{.qkv = buffer(s.qkv).row(t),
                         .z = s.z ? buffer(*s.z).row(t) : std::span<double>{},
                         .b = buffer(s.b).row(t),
                         .a = s.a ? buffer(*s.a).row(t) : std::span<double>{},
                         .out = buffer(s.out).row(t)};
      delta_row(layer, row, states.now);
    }
  }

  DeltaLayer delta_layer(const program::Recurrent& s) {
    DeltaLayer layer{.step = s,
                     .taps = s.conv.cols,
                     .conv = std::vector<double>(s.conv.rows * s.conv.cols),
                     .dt_bias = std::vector<double>(s.n_heads),
                     .decay = std::vector<double>(s.n_heads),
                     .norm = std::vector<double>(s.head_dim)};
    for (uint64_t r = 0; r < s.conv.rows; ++r) {
      decode_weight_row(weight(s.conv), r,
                        std::span(layer.conv).subspan(r * s.conv.cols, s.conv.cols));
    }
    decode_weight_row(weight(s.dt_bias), 0, layer.dt_bias);
    decode_weight_row(weight(s.decay), 0, layer.decay);
    decode_weight_row(weight(s.norm.weight), 0, layer.norm);
    return layer;
  }

  void execute(const program::Route& s) {
    const Matrix& x = normed(s.in, s.norm);
    Matrix logits{.width = s.weight.rows,
                  .values = std::vector<double>(rows_.size() * s.weight.rows)};
    multiply(s.weight, s.bias, x, logits);
    std::vector<double> shared(s.shared ? s.weight.cols : 0);
    if (s.shared) decode_weight_row(weight(*s.shared), 0, shared);
    for (size_t t = 0; t < rows_.size(); ++t) {
      const std::span<double> out = buffer(s.out.buffer).row(t);
      route_row(logits.row(t), s.renormalise, out.first(s.out.n_used),
                out.subspan(s.out.n_used, s.out.n_used));
      if (!s.shared) continue;
      double sum = 0;
      for (size_t i = 0; i < shared.size(); ++i) sum += shared[i] * x.row(t)[i];
      out.back() = sigmoid(sum);
    }
  }

  // Part number `id` of `n` equal parts.
  static WeightView part_of(WeightView all, size_t id, size_t n) {
    const uint64_t bytes = all.bytes.size() / n;
    all.bytes = all.bytes.subspan(id * bytes, bytes);
    (all.rows == 1 ? all.cols : all.rows) /= n;
    return all;
  }

  // What the expert of a slot makes of `x`.
  std::vector<double> slot_product(const program::ExpertMatrix& matrix,
                                   const std::optional<program::WeightRef>& shared,
                                   const program::Routing& routing, size_t t, size_t slot,
                                   std::span<const double> x) {
    WeightView w;
    std::optional<WeightView> bias;
    if (slot == routing.n_used) {
      w = weight(*shared);
    } else {
      const auto id = static_cast<size_t>(buffer(routing.buffer).row(t)[slot]);
      w = part_of(weight(matrix.weight), id, matrix.n_experts);
      if (matrix.bias) bias = part_of(weight(*matrix.bias), id, matrix.n_experts);
    }
    const Matrix row{.width = w.cols,
                     .values = {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(w.cols)}};
    Matrix y{.width = w.rows, .values = std::vector<double>(w.rows)};
    mat_mul({.weight = w, .bias = bias ? &*bias : nullptr, .x = &row, .n_rows = 1}, pool_, y);
    return y.values;
  }

  void execute(const program::ExpertGatedUp& s) {
    const Matrix& x = normed(s.in, s.norm);
    for (size_t t = 0; t < rows_.size(); ++t) {
      for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
        const auto gate = slot_product(s.gate, s.shared_gate, s.routing, t, slot, x.row(t));
        const auto up = slot_product(s.up, s.shared_up, s.routing, t, slot, x.row(t));
        const std::span<double> out =
            buffer(s.out).row(t).subspan(slot * s.gate.rows(), gate.size());
        for (size_t i = 0; i < out.size(); ++i) out[i] = activate(s.activation, gate[i], up[i]);
      }
    }
  }

  void execute(const program::ExpertDownAdd& s) {
    const size_t dim = s.down.rows();
    for (size_t t = 0; t < rows_.size(); ++t) {
      const std::span<const double> routing = buffer(s.routing.buffer).row(t);
      for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
        const auto y = slot_product(s.down, s.shared_down, s.routing, t, slot,
                                    buffer(s.in).row(t).subspan(slot * s.down.weight.cols));
        const double share = routing[s.routing.n_used + slot];
        for (size_t i = 0; i < dim; ++i) buffer(s.target).row(t)[i] += share * y[i];
      }
    }
  }

  // Turned keys, and values, into the cache.
  void store(const program::Attend& s, const Matrix& keys) {
    const program::Rope& rope = program_.ropes[s.rope.value];
    KvCache& kv = context_.kvs[s.kv.value];
    const size_t kv_width = size_t{s.n_kv_heads} * s.head_dim;
    for (size_t t = 0; t < rows_.size(); ++t) {
      const auto position = static_cast<uint64_t>(rows_[t].position.value);
      for (size_t h = 0; h < s.n_kv_heads; ++h) {
        const std::span<const double> k = keys.row(t).subspan(h * s.head_dim, s.head_dim);
        const std::span<const double> v = buffer(s.v).row(t).subspan(h * s.head_dim, s.head_dim);
        std::vector<double> turned(k.begin(), k.end());
        rope_head(rope, s.pairs, position, turned);
        const size_t at = position * kv_width + h * s.head_dim;
        round_kv_to(context_.settings.k_type, turned, std::span(kv.k).subspan(at, s.head_dim));
        round_kv_to(context_.settings.v_type, v, std::span(kv.v).subspan(at, s.head_dim));
      }
    }
  }

  void attend_one(const program::Attend& s, const Matrix& queries, size_t t, size_t head) {
    const auto position = static_cast<uint64_t>(rows_[t].position.value);
    const std::span<const double> q = queries.row(t).subspan(head * s.head_dim, s.head_dim);
    std::vector<double> turned(q.begin(), q.end());
    rope_head(program_.ropes[s.rope.value], s.pairs, position, turned);
    const double factor = s.q_scale ? query_factor(*s.q_scale, position) : 1.0;
    const uint64_t end = position + 1;
    attend_head({.q = turned,
                 .kv = &context_.kvs[s.kv.value],
                 .kv_head = head / (s.n_heads / s.n_kv_heads),
                 .n_kv_heads = s.n_kv_heads,
                 .first_position = s.window != 0 && end > s.window ? end - s.window : 0,
                 .end_position = end,
                 .scale = static_cast<double>(s.scale) * factor,
                 .softcap = static_cast<double>(s.softcap),
                 .sink = sink_of(s, head)},
                buffer(s.out).row(t).subspan(head * s.head_dim, s.head_dim));
  }

  std::optional<double> sink_of(const program::Attend& s, size_t head) {
    if (!s.sinks) return std::nullopt;
    std::vector<double> sinks(s.n_heads);
    decode_weight_row(weight(*s.sinks), 0, sinks);
    return sinks[head];
  }

  void execute(const program::ProjectAdd& s) {
    Matrix sum{.width = s.weight.rows, .values = std::vector<double>(rows_.size() * s.weight.rows)};
    multiply(s.weight, s.bias, buffer(s.in), sum);
    if (s.norm) norm_rows(*s.norm, sum, sum);
    for (size_t t = 0; t < rows_.size(); ++t) {
      const std::span<double> target = buffer(s.target).row(t);
      for (size_t i = 0; i < target.size(); ++i) {
        target[i] += static_cast<double>(s.scale) * sum.row(t)[i];
      }
    }
  }

  void execute(const program::GatedUp& s) {
    const Matrix& x = normed(s.in, s.norm);
    context_.gate.width = s.gate.rows;
    multiply(s.gate, s.gate_bias, x, context_.gate);
    multiply(s.up, s.up_bias, x, buffer(s.out));
    for (size_t t = 0; t < rows_.size(); ++t) {
      const std::span<const double> gate = context_.gate.row(t);
      const std::span<double> out = buffer(s.out).row(t);
      for (size_t i = 0; i < out.size(); ++i) out[i] = activate(s.activation, gate[i], out[i]);
    }
  }

  void execute(const program::Output& s) {
    const Matrix& x = normed(s.in, s.norm);
    Matrix wanted{.width = s.weight.cols, .values = {}};
    for (size_t t = 0; t < rows_.size(); ++t) {
      if (!rows_[t].wants_logits) continue;
      const std::span<const double> row = x.row(t);
      wanted.values.insert(wanted.values.end(), row.begin(), row.end());
    }
    const size_t n = wanted.values.size() / wanted.width;
    mat_mul({.weight = weight(s.weight),
             .bias = s.bias ? &weight(*s.bias) : nullptr,
             .x = &wanted,
             .n_rows = n},
            pool_, buffer(s.logits));
    for (size_t i = 0; i < n * s.weight.rows; ++i) {
      double& logit = buffer(s.logits).values[i];
      logit = softcapped(logit * static_cast<double>(s.scale), static_cast<double>(s.softcap));
      context_.logits[i] = static_cast<float>(logit);
    }
  }

  const Program& program_;
  std::span<const WeightView> weights_;
  ThreadPool& pool_;
  Context& context_;
  std::span<const Row> rows_;
};

class ReferenceBackend final : public backend::Backend {
 public:
  explicit ReferenceBackend(size_t n_threads) : pool_(n_threads) {}

  std::string_view name() const override { return "reference"; }
  Status supports(const program::Step&) const override { return {}; }
  std::string describe() const override {
    return fmt::format("reference, double precision, {} threads", pool_.size());
  }

  Result<backend::MemoryNeed> memory_need(const Program& program,
                                          const ContextSettings& settings) const override {
    if (Status s = check_kvs(program, settings); !s) return fail(s.error());
    backend::MemoryNeed need;
    for (const program::Weight& w : program.weights) {
      need.weight_bytes += w.rows * row_bytes(w.type, w.cols);
    }
    for (const program::Kv& kv : program.kvs) {
      need.kv_bytes +=
          2 * sizeof(double) * settings.n_positions * kv.n_kv_heads * uint64_t{kv.head_dim};
    }
    const size_t widest = widest_buffer(program);
    for (const program::State& state : program.states) {
      need.state_bytes += sizeof(double) * (state.conv_floats() + state.matrix_floats());
    }
    need.scratch_bytes = sizeof(double) * settings.max_rows * 3 * widest;
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      need.scratch_bytes +=
          sizeof(double) * buffer_rows(program, i, settings) * program.buffers[i].width;
    }
    need.scratch_bytes += sizeof(float) * settings.max_logit_rows * program.n_vocab;
    return need;
  }

  Status load(const Program& program, std::span<const std::span<const std::byte>> weights,
              const backend::Progress& progress) override {
    program_ = &program;
    weights_.clear();
    for (size_t i = 0; i < weights.size(); ++i) {
      const program::Weight& w = program.weights[i];
      weights_.push_back({.type = w.type, .rows = w.rows, .cols = w.cols, .bytes = weights[i]});
    }
    if (progress) progress("loading", 1, 1);
    return {};
  }

  Result<ContextId> make_context(const ContextSettings& settings) override {
    if (Status s = check_kvs(*program_, settings); !s) return fail(s.error());
    auto context = std::make_unique<Context>();
    context->settings = settings;
    for (size_t i = 0; i < program_->buffers.size(); ++i) {
      const size_t width = program_->buffers[i].width;
      context->buffers.push_back(
          {.width = width,
           .values = std::vector<double>(width * buffer_rows(*program_, i, settings))});
    }
    for (const program::Kv& kv : program_->kvs) {
      const size_t n = settings.n_positions * kv.n_kv_heads * kv.head_dim;
      context->kvs.push_back({.k = std::vector<double>(n), .v = std::vector<double>(n)});
    }
    const size_t widest = widest_buffer(*program_);
    context->normed.values.resize(settings.max_rows * widest);
    context->gate.values.resize(settings.max_rows * widest);
    context->queries.values.resize(settings.max_rows * widest);
    for (const program::State& state : program_->states) context->states.emplace_back(state);
    context->logits.resize(settings.max_logit_rows * program_->n_vocab);
    const ContextId id{next_context_++};
    contexts_.emplace(id.value, std::move(context));
    return id;
  }

  void release_context(ContextId context) override { contexts_.erase(context.value); }

  Status run(ContextId id, std::span<const Row> rows, program::StepRange steps) override {
    Context& context = find(id);
    const auto wanting =
        std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.wants_logits; });
    check(rows.size() <= context.settings.max_rows, "more rows than the context was made for");
    check(static_cast<size_t>(wanting) <= context.settings.max_logit_rows,
          "more logits than the context was made for");
    const auto tentative =
        std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.tentative; });
    check(program_->states.empty() ||
              static_cast<size_t>(tentative) <= context.settings.max_tentative_rows,
          "more tentative rows than the context was made for");
    for (const Row& row : rows) {
      check(row.position.value >= 0 &&
                static_cast<uint64_t>(row.position.value) < context.settings.n_positions,
            "position beyond the context");
      check(row.token.value >= 0 && static_cast<uint64_t>(row.token.value) < program_->n_vocab,
            "token outside the vocabulary");
    }
    context.n_rows = rows.size();
    context.n_logit_rows = static_cast<size_t>(wanting);
    Run run(*program_, weights_, pool_, context, rows);
    const std::vector<program::Step>& list = program_->steps(steps.list);
    for (size_t i = steps.begin; i < steps.end; ++i) run.step(list[i]);
    return {};
  }

  void read(ContextId id, BufferId buffer, std::span<float> out) const override {
    const Matrix& matrix = find(id).buffers[buffer.value];
    std::transform(matrix.values.begin(),
                   matrix.values.begin() + static_cast<std::ptrdiff_t>(out.size()), out.begin(),
                   [](double value) { return static_cast<float>(value); });
  }

  void write(ContextId id, BufferId buffer, std::span<const float> in) override {
    std::copy(in.begin(), in.end(), find(id).buffers[buffer.value].values.begin());
  }

  std::span<const float> logits(ContextId id) const override {
    const Context& context = find(id);
    return std::span(context.logits).first(context.n_logit_rows * program_->n_vocab);
  }

  backend::StateShape state_shape(ContextId) const override {
    return reference::state_shape(*program_);
  }

  void export_state(ContextId id, backend::PositionRange range,
                    backend::StateTarget to) const override {
    const Context& context = find(id);
    check(range.end <= context.settings.n_positions, "state of positions beyond the context");
    reference::export_state(*program_, context.kvs, context.states, range, to);
  }

  void import_state(ContextId id, backend::PositionRange range,
                    backend::StateSource from) override {
    Context& context = find(id);
    check(range.end <= context.settings.n_positions, "state of positions beyond the context");
    reference::import_state(*program_, context.kvs, context.states, range, from);
  }

 private:
  static size_t widest_buffer(const Program& program) {
    size_t widest = 0;
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      if (i != program.logits.value) widest = std::max(widest, size_t{program.buffers[i].width});
    }
    return widest;
  }

  static Status check_kvs(const Program& program, const ContextSettings& settings) {
    for (const program::Kv& kv : program.kvs) {
      for (const TensorType type : {settings.k_type, settings.v_type}) {
        if (Status s = backend::check_kv(type, kv.head_dim); !s) {
          return fail(Error(s.error()).with("reference"));
        }
      }
    }
    return {};
  }

  static size_t buffer_rows(const Program& program, size_t buffer,
                            const ContextSettings& settings) {
    return buffer == program.logits.value ? settings.max_logit_rows : settings.max_rows;
  }

  Context& find(ContextId id) const {
    const auto it = contexts_.find(id.value);
    check(it != contexts_.end(), "no such context");
    return *it->second;
  }

  ThreadPool pool_;
  const Program* program_ = nullptr;
  std::vector<WeightView> weights_;
  std::map<uint32_t, std::unique_ptr<Context>> contexts_;
  uint32_t next_context_ = 0;
};

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_reference_backend(
    const backend::BackendSettings& settings) {
  return std::make_unique<ReferenceBackend>(settings.n_threads);
}

}  // namespace godwit::reference
