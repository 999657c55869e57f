// One thread's walk through the steps of a call: the class behind executor.h. Its methods lie in
// files by subject: executor.cpp (inputs, products, the dense steps), walk_attend.cpp,
// walk_recurrent.cpp and walk_experts.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>

#include "backend/cpu/executor.h"
#include "base/bits.h"

namespace godwit::cpu {

// The part of `n` items in groups of `group` that thread `thread` takes.
struct Share {
  size_t begin = 0;
  size_t end = 0;
};

inline Share share_of(size_t n, size_t group, size_t thread, size_t n_threads) {
  const size_t groups = div_up(n, group);
  return {.begin = std::min(n, groups * thread / n_threads * group),
          .end = std::min(n, groups * (thread + 1) / n_threads * group)};
}

// A step's input, in each form that one of its weights reads.
struct Input {
  Activations f32;
  Activations q8_32;
  Activations q8_256;
  size_t n_rows = 0;

  [[nodiscard]] const Activations& form(ActivationKind kind) const {
    switch (kind) {
      case ActivationKind::kF32:
        return f32;
      case ActivationKind::kQ8Block32:
        return q8_32;
      case ActivationKind::kQ8Block256:
        return q8_256;
    }
    return f32;
  }
};

// Rows [first, first + n) of a matrix, first and n multiples of kTileRows or n up to its end: the
// whole of it, or one expert of many. An expert's rows may lie apart from the others.
struct MatrixPart {
  const program::WeightRef& weight;
  size_t first = 0;
  size_t n = 0;
  const std::byte* packed = nullptr;  // its first row, if it lies apart
  const std::byte* mapped = nullptr;  // the same in file layout
};

// Some of a convolution's channels: q or k of a key head, or v of its value heads.
struct Channels {
  size_t channel = 0;  // of the convolution
  size_t source = 0;   // of the row in the step's buffer
  size_t n = 0;
};

class Walker {
 public:
  Walker(const Call& call, size_t thread)
      : call_(call), context_(call.context), thread_(thread), n_threads_(call.pool.size()) {}

  // False: the call has failed, on all threads.
  [[nodiscard]] bool step(const program::Step& s) {
    std::visit([this](const auto& operation) { execute(operation); }, s.operation);
    call_.pool.barrier();
    return !failed_;
  }

  // Cosines and sines of every row, [n_rot / 2] each, in double and rounded once.
  void prepare_angles();

 private:
  [[nodiscard]] size_t n_rows() const { return call_.rows.size(); }
  [[nodiscard]] const BufferView& buffer(program::BufferId id) const {
    return context_.buffers[id.value];
  }

  // Where the input of a step comes from: rows of a buffer, normed or not.
  struct Source {
    const BufferView& from;
    const program::RmsNorm* norm = nullptr;
    std::span<const uint32_t> picked;  // rows of `from`; empty for all of the call
  };

  // The forms of its input that a step's weights read. Floats are there anyway, and are named here
  // for those who copy an input.
  struct Forms {
    bool f32 = false;
    bool q8_32 = false;
    bool q8_256 = false;
  };
  [[nodiscard]] Forms forms_of(std::initializer_list<program::WeightRef> readers) const {
    Forms forms;
    for (const program::WeightRef& reader : readers) add_form(reader, forms);
    return forms;
  }
  void add_form(const program::WeightRef& reader, Forms& forms) const;

  // Norms and rounds the input. A single row is made by every thread for itself, which is cheaper
  // than a barrier; more rows are shared out and end in one.
  Input prepare(const Source& source, Forms forms);

  static MatrixPart whole(const program::WeightRef& weight) {
    return {.weight = weight, .first = 0, .n = weight.rows, .packed = nullptr, .mapped = nullptr};
  }
  [[nodiscard]] Share my_rows(const MatrixPart& part) const {
    return share_of(part.n, kTileRows, thread_, n_threads_);
  }
  [[nodiscard]] Share my_rows(const program::WeightRef& weight) const {
    return my_rows(whole(weight));
  }

  // This thread's rows of y = W x.
  void multiply(const MatrixPart& part, const Input& input, const BufferView& y);
  void multiply_mapped(const MatrixPart& part, Share mine, std::span<std::byte> rows,
                       const MatVecArgs& whole);
  void multiply(const program::WeightRef& weight, const Input& input, const BufferView& y) {
    multiply(whole(weight), input, y);
  }

  static const program::RmsNorm* pointer(const std::optional<program::RmsNorm>& norm) {
    return norm ? &*norm : nullptr;
  }

  // y[mine] += bias[mine], for rows [0, n).
  void add_bias(const std::optional<program::WeightRef>& bias, Share mine, size_t n,
                const BufferView& y);
  // (gate, up, out, n) as program::Activation has it; out may be either.
  [[nodiscard]] auto activation(program::Activation kind) const {
    switch (kind) {
      case program::Activation::kSilu:
        return call_.ops.silu_mul;
      case program::Activation::kGelu:
        return call_.ops.gelu_mul;
      case program::Activation::kSwigluClamped:
        return call_.ops.swiglu_clamped;
    }
    return call_.ops.silu_mul;
  }
  // target += scale * x; x may be overwritten.
  void add_scaled(float* x, float scale, float* target, size_t n);

  void execute(const program::Embed& s);
  void execute(const program::Norm& s);
  void execute(const program::NormProject& s);
  void execute(const program::ProjectAdd& s);
  void execute(const program::GatedUp& s);
  void execute(const program::Output& s);
  void add_normed(const program::ProjectAdd& s);

  void execute(const program::Attend& s);
  static bool has_row_norm(const program::Attend& s);
  void norm_head_rows(const program::Attend& s);
  void turn_and_store(const program::Attend& s);
  void turn_query(const program::Attend& s, size_t t, size_t head);
  void store_key(const program::Attend& s, size_t t, size_t kv_head);
  void turn(const program::Attend& s, size_t t, const std::optional<program::RmsNorm>& norm,
            const float* x, float* out);
  void multiply_by_gates(const program::Attend& s);

  void execute(const program::Recurrent& s);
  // Rows [first, first + n) of the call, which lie in one chunk (delta_chunk.h) from `slot` on.
  struct ChunkRows {
    size_t first = 0;
    size_t chunk = 0;
    size_t slot = 0;
    size_t n = 0;
  };
  void settle(const program::Recurrent& s, size_t key_head);
  void walk_chunks(const program::Recurrent& s, size_t key_head);
  void walk_key_head(const program::Recurrent& s, size_t key_head, const ChunkRows& rows,
                     float* matrices);
  void fold(const program::Recurrent& s, size_t key_head, size_t chunk, float* matrices);
  static void clear(const program::Recurrent& s, size_t key_head, const DeltaLog& log);
  [[nodiscard]] float* settled_matrices(const program::Recurrent& s, size_t key_head) const;
  [[nodiscard]] DeltaHead delta_head(const program::Recurrent& s, size_t key_head, size_t i,
                                     size_t chunk, float* matrices) const;
  [[nodiscard]] DeltaHeadArea head_area(const program::Recurrent& s) const {
    return {context_.heads[thread_].data(), s.head_dim, s.heads_per_key()};
  }
  // Rows that could have been taken back before this call, and have not been.
  [[nodiscard]] size_t n_kept_rows() const {
    return static_cast<size_t>(call_.rows.front().position.value) - context_.span_before.settled;
  }
  // Where a value head's gates lie, in the rows that hold b and a.
  struct GatePlace {
    size_t head = 0;
    size_t b = 0;
    size_t a = 0;
  };
  void read_gates(const program::Recurrent& s, const GatePlace& place, const ChunkRows& rows,
                  std::span<double> log_decays, float* betas) const;
  void convolve(const program::Recurrent& s, const Channels& channels, size_t t, float* out) const;
  void keep_last_rows(const program::Recurrent& s, const Channels& channels);

  void execute(const program::Route& s);
  void choose_experts(const program::Route& s, size_t t);
  void play_back(const program::Route& s, size_t t, std::span<uint32_t> ids);
  void execute(const program::ExpertGatedUp& s);
  void execute(const program::ExpertDownAdd& s);

  // Calls compute(expert, its rows, their input) for each expert that rows of the call chose, at
  // most kExpertRows rows at a time.
  template <class Compute>
  void for_each_expert(const program::Routing& routing, const program::ExpertMatrix& matrix,
                       const SlotColumns& columns, const Input& input, const Forms& forms,
                       const Compute& compute);
  template <class Visit>
  void visit_experts(const program::ExpertMatrix& matrix, const ExpertRows& groups,
                     const Visit& visit);
  [[nodiscard]] MatrixPart expert_of(const program::ExpertMatrix& matrix,
                                     const VisitedExpert& expert) const;
  Input gather(const Input& input, std::span<const ExpertRow> rows, const SlotColumns& columns,
               const Forms& forms);
  void add_expert_bias(const program::ExpertMatrix& matrix, size_t expert, size_t n,
                       const BufferView& y);
  void gate_shared(const program::ExpertGatedUp& s, const Input& input);
  void add_slots(const program::ExpertDownAdd& s);

  const Call& call_;
  Context& context_;
  size_t thread_;
  size_t n_threads_;
  bool failed_ = false;
};

}  // namespace godwit::cpu
