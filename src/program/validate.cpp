#include "program/validate.h"

#include <string>
#include <vector>

#include "program/access.h"

namespace godwit::program {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program),
        written_(program.buffers.size(), false),
        attended_(program.kvs.size(), false),
        n_routed_(program.buffers.size(), 0) {}

  Status run() {
    if (Status s = run(program_.main); !s) return s;
    if (program_.logits.value >= written_.size() || !written_[program_.logits.value]) {
      return fail("program: no step writes the logits");
    }
    if (program_.mtp.empty()) return {};
    // It reads what main left, and predicts into the same logits.
    if (Status s = run(program_.mtp); !s) return s;
    return check_mtp();
  }

 private:
  Status run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      step_ = &step;
      // What a step reads and writes is a share of such a matrix.
      for (const ExpertMatrix* matrix : expert_matrices(step.operation)) {
        if (matrix != nullptr && matrix->n_experts == 0) return wrong("there are no experts");
      }
      if (Status s = check_access(access_of(step.operation)); !s) return s;
      Status s = std::visit([this](const auto& operation) { return check_kind(operation); },
                            step.operation);
      if (!s) return s;
    }
    return {};
  }

  Status check_mtp() {
    const auto* const first = std::get_if<Norm>(&program_.mtp.front().operation);
    if (first == nullptr || first->out != program_.mtp_hidden) {
      return fail("program: the mtp list does not begin with its hidden states");
    }
    const auto* const last = std::get_if<Output>(&program_.mtp.back().operation);
    if (last == nullptr || last->logits != program_.logits) {
      return fail("program: the mtp list does not end with the logits");
    }
    for (const Step& step : program_.mtp) {
      if (std::holds_alternative<Recurrent>(step.operation)) {
        return fail("program: step '{}': a recurrent layer in the mtp list", step.label);
      }
    }
    return {};
  }

  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) {
    return fail("program: step '{}': {}", step_->label,
                fmt::format(format, std::forward<Args>(args)...));
  }

  Status check_access(const Access& access) {
    for (const WeightRef& ref : access.weights) {
      if (Status s = check_weight(ref); !s) return s;
    }
    for (const Access::Use& use : access.reads) {
      if (Status s = check_buffer(use); !s) return s;
      if (!written_[use.buffer.value]) {
        return wrong("reads buffer '{}' before any step has written it",
                     program_.buffers[use.buffer.value].name);
      }
    }
    for (const Access::Use& use : access.writes) {
      if (Status s = check_buffer(use); !s) return s;
      written_[use.buffer.value] = true;
    }
    return {};
  }

  Status check_weight(const WeightRef& ref) {
    if (ref.id >= program_.weights.size()) return wrong("weight {} does not exist", ref.id);
    const Weight& weight = program_.weights[ref.id];
    if (weight.type != ref.type || weight.rows != ref.rows || weight.cols != ref.cols) {
      return wrong("weight '{}' is [{}, {}] {}, the step expects [{}, {}] {}", weight.name,
                   weight.rows, weight.cols, tensor_type_name(weight.type), ref.rows, ref.cols,
                   tensor_type_name(ref.type));
    }
    return {};
  }

  Status check_buffer(const Access::Use& use) {
    if (use.buffer.value >= program_.buffers.size()) {
      return wrong("buffer {} does not exist", use.buffer.value);
    }
    const Buffer& buffer = program_.buffers[use.buffer.value];
    if (buffer.width != use.width) {
      return wrong("buffer '{}' holds {} floats, the step expects {}", buffer.name, buffer.width,
                   use.width);
    }
    return {};
  }

  Status check_vector(const WeightRef& ref, uint64_t width) {
    if (ref.rows != 1 || ref.cols != width) {
      return wrong("'{}' is [{}, {}], expected [1, {}]", program_.weights[ref.id].name, ref.rows,
                   ref.cols, width);
    }
    if (ref.type != TensorType::kF32) {
      return wrong("'{}' is {}, expected F32", program_.weights[ref.id].name,
                   tensor_type_name(ref.type));
    }
    return {};
  }

  Status check_norm(const std::optional<RmsNorm>& norm, uint64_t width) {
    return norm ? check_vector(norm->weight, width) : Status{};
  }

  Status check_bias(const std::optional<WeightRef>& bias, uint64_t width) {
    return bias ? check_vector(*bias, width) : Status{};
  }

  Status check_cols(const WeightRef& ref, uint64_t cols) {
    if (ref.cols == cols) return {};
    return wrong("'{}' has {} columns, its input has {}", program_.weights[ref.id].name, ref.cols,
                 cols);
  }

  Status check_kind(const Embed& s) {
    if (s.table.rows != program_.n_vocab) {
      return wrong("the embedding has {} rows, the vocabulary {}", s.table.rows, program_.n_vocab);
    }
    return {};
  }

  Status check_kind(const Norm& s) {
    if (s.parts.empty()) return wrong("norms nothing");
    for (const Norm::Part& part : s.parts) {
      if (Status c = check_vector(part.norm.weight, part.norm.weight.cols); !c) return c;
    }
    return {};
  }

  Status check_kind(const NormProject& s) {
    if (s.projections.empty()) return wrong("projects nothing");
    const uint64_t cols = s.projections.front().weight.cols;
    if (Status c = check_norm(s.norm, cols); !c) return c;
    for (const Projection& p : s.projections) {
      if (Status c = check_cols(p.weight, cols); !c) return c;
      if (Status c = check_bias(p.bias, p.weight.rows); !c) return c;
    }
    return {};
  }

  Status check_kind(const Attend& s) {
    if (s.kv.value >= program_.kvs.size()) return wrong("KV {} does not exist", s.kv.value);
    if (s.rope.value >= program_.ropes.size()) return wrong("RoPE {} does not exist", s.rope.value);
    if (attended_[s.kv.value]) return wrong("KV {} already belongs to another step", s.kv.value);
    attended_[s.kv.value] = true;
    const Kv& kv = program_.kvs[s.kv.value];
    if (kv.n_kv_heads != s.n_kv_heads || kv.head_dim != s.head_dim) {
      return wrong("KV holds {} heads of {}, the step expects {} of {}", kv.n_kv_heads, kv.head_dim,
                   s.n_kv_heads, s.head_dim);
    }
    if (s.n_kv_heads == 0 || s.head_dim == 0 || s.n_heads % s.n_kv_heads != 0) {
      return wrong("{} heads cannot share {} KV heads", s.n_heads, s.n_kv_heads);
    }
    const Rope& rope = program_.ropes[s.rope.value];
    if (rope.n_rot > s.head_dim || rope.n_rot % 2 != 0 ||
        rope.frequencies.size() != rope.n_rot / 2) {
      return wrong("RoPE turns {} dimensions with {} frequencies, a head has {}", rope.n_rot,
                   rope.frequencies.size(), s.head_dim);
    }
    if (s.q_scale && s.q_scale->length == 0) return wrong("scales queries by position / 0");
    if (Status c = check_bias(s.sinks, s.n_heads); !c) return c;
    if (Status c = check_head_norm(s.q_norm, s.n_heads, s.head_dim); !c) return c;
    return check_head_norm(s.k_norm, s.n_kv_heads, s.head_dim);
  }

  // Of each head, or of all heads of a row.
  Status check_head_norm(const std::optional<RmsNorm>& norm, uint64_t n_heads, uint64_t head_dim) {
    if (!norm) return {};
    return check_vector(norm->weight,
                        norm->weight.cols == head_dim ? head_dim : n_heads * head_dim);
  }

  Status check_kind(const Recurrent& s) {
    if (s.state.value >= program_.states.size()) {
      return wrong("state {} does not exist", s.state.value);
    }
    const State& state = program_.states[s.state.value];
    if (s.n_key_heads == 0 || s.head_dim == 0 || s.n_heads % s.n_key_heads != 0) {
      return wrong("{} heads cannot share {} key heads", s.n_heads, s.n_key_heads);
    }
    const uint64_t channels = (2 * uint64_t{s.n_key_heads} + s.n_heads) * s.head_dim;
    if (state.channels != channels || state.n_heads != s.n_heads || state.head_dim != s.head_dim ||
        state.taps < 2) {
      return wrong("state of {} channels, {} taps and {} heads of {} does not fit", state.channels,
                   state.taps, state.n_heads, state.head_dim);
    }
    if (s.conv.rows != channels || s.conv.cols != state.taps || s.conv.type != TensorType::kF32) {
      return wrong("the convolution is [{}, {}] {}, expected [{}, {}] F32", s.conv.rows,
                   s.conv.cols, tensor_type_name(s.conv.type), channels, state.taps);
    }
    if ((s.layout == Recurrent::Layout::kSplit) != s.z.has_value()) {
      return wrong("z belongs in a buffer of its own where q, k and v are split, and only there");
    }
    if (s.pairing == Recurrent::Pairing::kModulo &&
        (s.layout != Recurrent::Layout::kSplit || !s.a)) {
      return wrong("heads that lie key head by key head go with their neighbours' key head");
    }
    if (Status c = check_vector(s.dt_bias, s.n_heads); !c) return c;
    if (Status c = check_vector(s.decay, s.n_heads); !c) return c;
    return check_vector(s.norm.weight, s.head_dim);
  }

  Status check_kind(const Route& s) {
    if (Status c = check_vector(s.norm.weight, s.weight.cols); !c) return c;
    if (s.shared.has_value() != s.out.shared) return wrong("the shared expert lacks a weight");
    if (Status c = check_bias(s.shared, s.weight.cols); !c) return c;
    if (Status c = check_bias(s.bias, s.weight.rows); !c) return c;
    if (s.out.n_used == 0 || s.out.n_used > s.weight.rows) {
      return wrong("chooses {} of {} experts", s.out.n_used, s.weight.rows);
    }
    n_routed_[s.out.buffer.value] = s.weight.rows;
    return {};
  }

  Status check_experts(const ExpertMatrix& matrix, const Routing& routing, uint64_t rows,
                       uint64_t cols) {
    const uint64_t n_routed = n_routed_[routing.buffer.value];
    if (matrix.n_experts != n_routed) {
      return wrong("has {} experts, its router chooses among {}", matrix.n_experts, n_routed);
    }
    if (matrix.weight.rows != matrix.n_experts * rows || matrix.weight.cols != cols) {
      return wrong("'{}' is [{}, {}], expected {} experts of [{}, {}]",
                   program_.weights[matrix.weight.id].name, matrix.weight.rows, matrix.weight.cols,
                   matrix.n_experts, rows, cols);
    }
    return check_bias(matrix.bias, matrix.weight.rows);
  }

  // The shared expert has a matrix where it has a weight.
  Status check_shared(const std::optional<WeightRef>& weight, const Routing& routing, uint64_t rows,
                      uint64_t cols) {
    if (weight.has_value() != routing.shared) return wrong("the shared expert lacks a matrix");
    if (weight && (weight->rows != rows || weight->cols != cols)) {
      return wrong("the shared expert's '{}' is [{}, {}], expected [{}, {}]",
                   program_.weights[weight->id].name, weight->rows, weight->cols, rows, cols);
    }
    return {};
  }

  Status check_kind(const ExpertGatedUp& s) {
    const uint64_t ffn = s.gate.rows();
    const uint64_t dim = s.gate.weight.cols;
    if (Status c = check_vector(s.norm.weight, dim); !c) return c;
    if (Status c = check_experts(s.gate, s.routing, ffn, dim); !c) return c;
    if (Status c = check_experts(s.up, s.routing, ffn, dim); !c) return c;
    const uint64_t shared_ffn = s.shared_gate ? s.shared_gate->rows : 0;
    if (Status c = check_shared(s.shared_gate, s.routing, shared_ffn, dim); !c) return c;
    return check_shared(s.shared_up, s.routing, shared_ffn, dim);
  }

  Status check_kind(const ExpertDownAdd& s) {
    if (Status c = check_experts(s.down, s.routing, s.down.rows(), s.down.weight.cols); !c)
      return c;
    const uint64_t shared_ffn = s.shared_down ? s.shared_down->cols : 0;
    return check_shared(s.shared_down, s.routing, s.down.rows(), shared_ffn);
  }

  Status check_kind(const ProjectAdd& s) {
    if (Status c = check_norm(s.norm, s.weight.rows); !c) return c;
    return check_bias(s.bias, s.weight.rows);
  }

  Status check_kind(const GatedUp& s) {
    if (Status c = check_norm(s.norm, s.gate.cols); !c) return c;
    if (Status c = check_cols(s.up, s.gate.cols); !c) return c;
    if (s.gate.rows != s.up.rows) return wrong("gate has {} rows, up {}", s.gate.rows, s.up.rows);
    if (Status c = check_bias(s.gate_bias, s.gate.rows); !c) return c;
    return check_bias(s.up_bias, s.up.rows);
  }

  Status check_kind(const Output& s) {
    if (Status c = check_vector(s.norm.weight, s.weight.cols); !c) return c;
    if (Status c = check_bias(s.bias, s.weight.rows); !c) return c;
    if (s.weight.rows != program_.n_vocab) {
      return wrong("the output has {} rows, the vocabulary {}", s.weight.rows, program_.n_vocab);
    }
    return {};
  }

  const Program& program_;
  const Step* step_ = nullptr;
  std::vector<bool> written_;
  std::vector<bool> attended_;
  std::vector<uint64_t> n_routed_;  // [buffers], the experts that a routing in it chooses among
};

}  // namespace

Status validate(const Program& program) { return Validator(program).run(); }

}  // namespace godwit::program
