// The twin over a kind of memory: what twin_loops.h computes, in order, for one token. Included by
// twin_host.cpp and twin_device.cu alone, which bring `Memory`:
//   template <class T> Array          movable; data(), size()
//   Array<T> make<T>(n)               not initialised
//   each(n, loop)                     loop(i) for i < n, after everything before it
//   to_host / from_host(span, T*)     copies
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "grader/twin.h"
#include "grader/twin_loops.h"

namespace godwit::grader {

template <class Memory, class Real>
struct TwinWork {
  template <class T>
  using Array = typename Memory::template Array<T>;

  TwinWork(Memory& memory, const GradedShape& s)
      : x(memory.template make<Real>(s.dim)),
        n(memory.template make<Real>(s.dim)),
        factors(memory.template make<Real>(s.n_heads)),
        q(memory.template make<Real>(s.q_width())),
        k(memory.template make<Real>(s.kv_width())),
        v(memory.template make<Real>(s.kv_width())),
        normed(memory.template make<Real>(s.q_width())),
        turned(memory.template make<Real>(s.q_width())),
        attended(memory.template make<Real>(s.q_width())),
        gate(memory.template make<Real>(s.ffn)),
        up(memory.template make<Real>(s.ffn)),
        hidden(memory.template make<Real>(s.ffn)),
        logits(memory.template make<Real>(s.n_vocab)),
        partial(memory.template make<Real>(partial_size(s))) {}

  static uint64_t partial_size(const GradedShape& s) {
    const uint64_t rows = std::max<uint64_t>({s.n_vocab, s.ffn, s.q_width(), s.dim});
    const uint64_t cols = std::max<uint64_t>({s.dim, s.q_width(), s.kv_width()});
    return std::max(rows * chunks_of(cols, kColumnChunk), s.dim * chunks_of(s.ffn, kColumnChunk));
  }

  Array<Real> x, n, factors, q, k, v, normed, turned, attended, gate, up, hidden, logits, partial;
};

template <class Memory>
class TwinOf final : public Twin {
 public:
  template <class T>
  using Array = typename Memory::template Array<T>;

  TwinOf(Memory memory, const GradedModel& model, uint64_t capacity)
      : memory_(std::move(memory)),
        model_(model),
        shape_(model.shape),
        capacity_(capacity),
        cache_(memory_.template make<uint16_t>(capacity * shape_.position_numbers())),
        scores_(memory_.template make<double>(capacity * shape_.n_heads)),
        maxima_(memory_.template make<double>(n_chunks(capacity) * shape_.n_heads)),
        sums_(memory_.template make<double>(n_chunks(capacity) * shape_.n_heads)),
        head_maxima_(memory_.template make<double>(shape_.n_heads)),
        head_sums_(memory_.template make<double>(shape_.n_heads)),
        values_(memory_.template make<double>(n_chunks(capacity) * shape_.q_width())),
        angles_(memory_.template make<double>(shape_.head_dim)),
        narrow_(memory_.template make<float>(shape_.n_vocab)),
        single_(memory_, shape_),
        double_(memory_, shape_) {
    for (const GradedTensor& t : model.tensors) {
      if (t.type == TensorType::kF32) {
        vectors_.push_back(memory_.template make<float>(t.numbers()));
        matrices_.push_back(memory_.template make<uint16_t>(0));
        memory_.each(t.numbers(), FillVector{t.rule, t.numbers(), vectors_.back().data()});
      } else {
        vectors_.push_back(memory_.template make<float>(0));
        matrices_.push_back(memory_.template make<uint16_t>(t.numbers()));
        memory_.each(t.numbers(), FillMatrix{t.rule, t.cols, matrices_.back().data()});
      }
    }
    fill_cache();
  }

  void fill_cache() override {
    memory_.each(cache_.size(), FillCache{model_.cache, shape_.n_layers, shape_.n_kv_heads,
                                          shape_.head_dim, cache_.data()});
  }
  void read_cache(uint64_t begin, std::span<uint16_t> out) const override {
    check_rows(begin, out.size());
    memory_.to_host(out, cache_.data() + begin * shape_.position_numbers());
  }
  void write_cache(uint64_t begin, std::span<const uint16_t> in) override {
    check_rows(begin, in.size());
    memory_.from_host(in, cache_.data() + begin * shape_.position_numbers());
  }
  [[nodiscard]] std::vector<std::byte> tensor_bytes(uint32_t tensor) const override {
    const GradedTensor& t = model_.tensors[tensor];
    std::vector<std::byte> bytes(t.numbers() * (t.type == TensorType::kF32 ? 4 : 2));
    if (t.type == TensorType::kF32) {
      memory_.to_host(std::span(reinterpret_cast<float*>(bytes.data()), t.numbers()),
                      vectors_[tensor].data());
    } else {
      memory_.to_host(std::span(reinterpret_cast<uint16_t*>(bytes.data()), t.numbers()),
                      matrices_[tensor].data());
    }
    return bytes;
  }

  void step(const TwinStep& step, std::span<float> logits, const TwinTrace& trace) override {
    make_angles(step.position, step.mutant);
    switch (step.precision) {
      case TwinPrecision::kFloat:
        return run(single_, step, logits, trace);
      case TwinPrecision::kDouble:
        return run(double_, step, logits, trace);
    }
  }

 private:
  void check_rows(uint64_t begin, uint64_t n_numbers) const {
    check(begin * shape_.position_numbers() + n_numbers <= cache_.size(),
          "Twin: rows beyond the cache");
  }

  static uint64_t n_chunks(uint64_t n_positions) { return chunks_of(n_positions, kPositionChunk); }

  // Cosines, then sines, of the position; no turn at all for the mutant.
  void make_angles(uint64_t position, Mutant mutant) {
    const uint64_t half = shape_.head_dim / 2;
    std::vector<double> table(2 * half);
    for (uint64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(
          shape_.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(shape_.head_dim));
      const double angle =
          mutant == Mutant::kNoRope ? 0.0 : static_cast<double>(position) * frequency;
      table[i] = std::cos(angle);
      table[half + i] = std::sin(angle);
    }
    memory_.from_host(std::span<const double>(table), angles_.data());
  }

  [[nodiscard]] Sight sight_of(uint64_t position, Mutant mutant) const {
    const uint64_t n = position + 1;
    Sight sight;
    if (mutant == Mutant::kHalfHistory) sight.first = n / 2;
    if (mutant == Mutant::kLast128) sight.first = n > 128 ? n - 128 : 0;
    if (mutant == Mutant::kDropSplit) {
      const uint64_t piece = chunks_of(shape_.n_kv_heads * n, 132);
      sight.hole_head = shape_.n_kv_heads / 2;
      sight.hole_begin = n / 2;
      sight.hole_end = n / 2 + piece;
    }
    return sight;
  }

  [[nodiscard]] const float* vector(uint32_t tensor) const {
    return tensor == LayerTensors::kAbsent ? nullptr : vectors_[tensor].data();
  }

  // out = W in (+ bias) (+ base)
  template <class Real>
  void mat_vec(TwinWork<Memory, Real>& w, uint32_t tensor, const float* bias, const Real* in,
               const Real* base, Real* out) {
    const GradedTensor& t = model_.tensors[tensor];
    const uint64_t chunks = chunks_of(t.cols, kColumnChunk);
    memory_.each(t.rows * chunks,
                 MatVecPartial<Real>{matrices_[tensor].data(), in, t.cols, w.partial.data()});
    memory_.each(t.rows, AddPartials<Real>{w.partial.data(), chunks, bias, base, out});
  }
  template <class Real>
  void norm(TwinWork<Memory, Real>& w, uint32_t tensor, const Real* in, uint64_t n_groups,
            uint64_t width, Real* out) {
    memory_.each(n_groups,
                 NormFactor<Real>{in, width, static_cast<Real>(shape_.epsilon), w.factors.data()});
    memory_.each(n_groups * width,
                 ApplyNorm<Real>{in, w.factors.data(), vector(tensor), width, out});
  }

  // Head norm, if any, and RoPE: `turned` holds the heads afterwards.
  template <class Real>
  void turn(TwinWork<Memory, Real>& w, uint32_t norm_tensor, const Array<Real>& heads,
            uint64_t n_heads) {
    const Real* in = heads.data();
    if (norm_tensor != LayerTensors::kAbsent) {
      norm(w, norm_tensor, in, n_heads, shape_.head_dim, w.normed.data());
      in = w.normed.data();
    }
    const uint64_t half = shape_.head_dim / 2;
    memory_.each(n_heads * half,
                 Turn<Real>{in, angles_.data(), angles_.data() + half, shape_.head_dim,
                            shape_.pairs == program::RopePairs::kAdjacent, w.turned.data()});
  }

  template <class Real>
  void append(TwinWork<Memory, Real>& w, const TwinStep& step, uint32_t layer) {
    const uint64_t width = shape_.kv_width();
    uint16_t* row = cache_.data() + step.position * shape_.position_numbers() + 2 * layer * width;
    if (step.mutant == Mutant::kStaleRow) {
      const uint64_t before = step.position == 0 ? 0 : shape_.position_numbers();
      memory_.each(2 * width, CopyRow{row - before, row});
      return;
    }
    turn(w, model_.layers[layer].k_norm, w.k, shape_.n_kv_heads);
    memory_.each(width, AppendRow<Real>{w.turned.data(), row});
    memory_.each(width, AppendRow<Real>{w.v.data(), row + width});
  }

  template <class Real>
  void attend(TwinWork<Memory, Real>& w, const TwinStep& step, uint32_t layer) {
    append(w, step, layer);
    turn(w, model_.layers[layer].q_norm, w.q, shape_.n_heads);
    const AttendShape a{.cache = cache_.data() + 2 * layer * shape_.kv_width(),
                        .position_stride = shape_.position_numbers(),
                        .n_positions = step.position + 1,
                        .n_heads = shape_.n_heads,
                        .n_kv_heads = shape_.n_kv_heads,
                        .head_dim = shape_.head_dim,
                        .sight = sight_of(step.position, step.mutant),
                        .wrong_map = step.mutant == Mutant::kWrongGqa};
    const uint64_t chunks = n_chunks(a.n_positions);
    const auto scale = static_cast<Real>(1.0 / std::sqrt(static_cast<double>(shape_.head_dim)));
    memory_.each(a.n_positions * a.n_heads,
                 Scores<Real>{a, w.turned.data(), scale, scores_.data()});
    memory_.each(chunks * a.n_heads, ChunkSums{a, scores_.data(), maxima_.data(), sums_.data()});
    memory_.each(a.n_heads, HeadSums{a.n_heads, chunks, maxima_.data(), sums_.data(),
                                     head_maxima_.data(), head_sums_.data()});
    memory_.each(chunks * shape_.q_width(), ValuePartial{a, scores_.data(), head_maxima_.data(),
                                                         head_sums_.data(), values_.data()});
    memory_.each(shape_.q_width(), AddValues<Real>{values_.data(), chunks, w.attended.data()});
  }

  template <class Real>
  void report(const TwinTrace& trace, std::string_view step, std::string_view buffer,
              const Array<Real>& array) const {
    if (!trace) return;
    std::vector<Real> values(array.size());
    memory_.to_host(std::span<Real>(values), array.data());
    const std::vector<double> wide(values.begin(), values.end());
    trace(step, buffer, wide);
  }

  template <class Real>
  void layer(TwinWork<Memory, Real>& w, const TwinStep& step, uint32_t index,
             const TwinTrace& trace) {
    const LayerTensors& t = model_.layers[index];
    const std::string prefix = "blk." + std::to_string(index) + ".";
    norm(w, t.attn_norm, w.x.data(), 1, shape_.dim, w.n.data());
    mat_vec(w, t.q, vector(t.q_bias), w.n.data(), static_cast<const Real*>(nullptr), w.q.data());
    mat_vec(w, t.k, vector(t.k_bias), w.n.data(), static_cast<const Real*>(nullptr), w.k.data());
    mat_vec(w, t.v, vector(t.v_bias), w.n.data(), static_cast<const Real*>(nullptr), w.v.data());
    report(trace, prefix + "qkv", "q", w.q);
    report(trace, prefix + "qkv", "k", w.k);
    report(trace, prefix + "qkv", "v", w.v);
    attend(w, step, index);
    report(trace, prefix + "attend", "attended", w.attended);
    mat_vec(w, t.o, nullptr, w.attended.data(), w.x.data(), w.x.data());
    report(trace, prefix + "attn_out", "x", w.x);
    norm(w, t.ffn_norm, w.x.data(), 1, shape_.dim, w.n.data());
    mat_vec(w, t.gate, nullptr, w.n.data(), static_cast<const Real*>(nullptr), w.gate.data());
    mat_vec(w, t.up, nullptr, w.n.data(), static_cast<const Real*>(nullptr), w.up.data());
    memory_.each(shape_.ffn, GateTimesUp<Real>{w.gate.data(), w.up.data(),
                                               step.mutant != Mutant::kNoSilu, w.hidden.data()});
    report(trace, prefix + "gated_up", "hidden", w.hidden);
    mat_vec(w, t.down, nullptr, w.hidden.data(), w.x.data(), w.x.data());
    report(trace, prefix + "down", "x", w.x);
  }

  template <class Real>
  void run(TwinWork<Memory, Real>& w, const TwinStep& step, std::span<float> logits,
           const TwinTrace& trace) {
    const auto token = static_cast<uint64_t>(step.token.value);
    memory_.each(shape_.dim, EmbedRow<Real>{matrices_[model_.embedding].data() + token * shape_.dim,
                                            w.x.data()});
    report(trace, "embed", "x", w.x);
    for (uint32_t i = 0; i < shape_.n_layers; ++i) {
      if (step.mutant == Mutant::kSkipLayer && i == shape_.n_layers / 2) continue;
      layer(w, step, i, trace);
    }
    norm(w, model_.output_norm, w.x.data(), 1, shape_.dim, w.n.data());
    mat_vec(w, model_.output, nullptr, w.n.data(), static_cast<const Real*>(nullptr),
            w.logits.data());
    report(trace, "output", "logits", w.logits);
    memory_.each(shape_.n_vocab, Narrow<Real>{w.logits.data(), narrow_.data()});
    memory_.to_host(logits, narrow_.data());
  }

  Memory memory_;
  const GradedModel& model_;
  GradedShape shape_;
  uint64_t capacity_;
  std::vector<Array<uint16_t>> matrices_;  // [tensor]; empty for vectors
  std::vector<Array<float>> vectors_;      // [tensor]; empty for matrices
  Array<uint16_t> cache_;                  // [position][layer][K, V][kv_head][dim]
  Array<double> scores_;                   // [position, head]
  Array<double> maxima_, sums_;            // [chunk, head]
  Array<double> head_maxima_, head_sums_;  // [head]
  Array<double> values_;                   // [head, dim, chunk]
  Array<double> angles_;                   // cosines, sines
  Array<float> narrow_;                    // [n_vocab]
  TwinWork<Memory, float> single_;
  TwinWork<Memory, double> double_;
};

}  // namespace godwit::grader
