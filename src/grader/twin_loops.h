// The loops of the twin: each struct computes element i of one result and is called for every i,
// by a for loop on the host or by one thread each on the device. Sums over long rows are cut into
// chunks whose partial sums another loop adds, in order. Real is float or double.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "grader/value_rule.h"

namespace godwit::grader {

inline constexpr uint64_t kColumnChunk = 128;
inline constexpr uint64_t kPositionChunk = 128;

[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t chunks_of(uint64_t n, uint64_t chunk) {
  return (n + chunk - 1) / chunk;
}

struct alignas(16) EightWeights {
  uint16_t values[8];
};

// Weights and vectors from their rules.
struct FillMatrix {
  ValueRule rule;
  uint64_t cols;
  uint16_t* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    out[i] = bf16_value(rule, i / cols, i % cols, cols);
  }
};
struct FillVector {
  ValueRule rule;
  uint64_t n;
  float* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    out[i] = bf16_to_f32(bf16_value(rule, 0, i, n));
  }
};
// The cache in the layout of backend/state.h: [position][layer][K, V][kv_head][dim].
struct FillCache {
  CacheRule rule;
  uint64_t n_layers, n_kv_heads, head_dim;
  uint16_t* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    CachePlace place;
    uint64_t rest = i;
    place.dim = rest % head_dim;
    rest /= head_dim;
    place.kv_head = rest % n_kv_heads;
    rest /= n_kv_heads;
    place.part = rest % 2 == 0 ? CachePart::kKey : CachePart::kValue;
    rest /= 2;
    place.layer = rest % n_layers;
    place.position = rest / n_layers;
    out[i] = cache_value(rule, place, n_kv_heads, head_dim);
  }
};

template <class Real>
struct EmbedRow {
  const uint16_t* row;
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    out[i] = static_cast<Real>(bf16_to_f32(row[i]));
  }
};

// One factor per group of `width` elements: 1 / sqrt(mean square + epsilon).
template <class Real>
struct NormFactor {
  const Real* in;
  uint64_t width;
  Real epsilon;
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t group) const {
    Real sum = 0;
    for (uint64_t i = 0; i < width; ++i) {
      const Real x = in[group * width + i];
      sum += x * x;
    }
    out[group] = Real(1) / std::sqrt(sum / static_cast<Real>(width) + epsilon);
  }
};
template <class Real>
struct ApplyNorm {
  const Real* in;
  const Real* factors;
  const float* weight;  // [width]
  uint64_t width;
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    out[i] = in[i] * factors[i / width] * static_cast<Real>(weight[i % width]);
  }
};

// partial[row, chunk] of W in; cols is a multiple of 8.
template <class Real>
struct MatVecPartial {
  const uint16_t* weight;
  const Real* in;
  uint64_t cols;
  Real* partial;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    const uint64_t n_chunks = chunks_of(cols, kColumnChunk);
    const uint64_t row = i / n_chunks;
    const uint64_t begin = i % n_chunks * kColumnChunk;
    const uint64_t end = begin + kColumnChunk < cols ? begin + kColumnChunk : cols;
    Real sum = 0;
    for (uint64_t c = begin; c < end; c += 8) {
      const auto eight = *reinterpret_cast<const EightWeights*>(weight + row * cols + c);
      for (uint64_t j = 0; j < 8; ++j) {
        sum += static_cast<Real>(bf16_to_f32(eight.values[j])) * in[c + j];
      }
    }
    partial[i] = sum;
  }
};
// out[i] = (base[i]) + (bias[i]) + sum of its partials
template <class Real>
struct AddPartials {
  const Real* partial;
  uint64_t n_chunks;
  const float* bias;  // or nullptr
  const Real* base;   // or nullptr; may be out itself
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    Real sum = 0;
    for (uint64_t c = 0; c < n_chunks; ++c) sum += partial[i * n_chunks + c];
    if (bias != nullptr) sum += static_cast<Real>(bias[i]);
    out[i] = base != nullptr ? base[i] + sum : sum;
  }
};

// Turns pair i of n_heads * head_dim / 2; cosines and sines [head_dim / 2] of the position.
template <class Real>
struct Turn {
  const Real* in;
  const double* cosines;
  const double* sines;
  uint64_t head_dim;
  bool adjacent;
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    const uint64_t half = head_dim / 2;
    const uint64_t pair = i % half;
    const uint64_t base = i / half * head_dim;
    const uint64_t a = base + (adjacent ? 2 * pair : pair);
    const uint64_t b = adjacent ? a + 1 : a + half;
    const auto c = static_cast<Real>(cosines[pair]);
    const auto s = static_cast<Real>(sines[pair]);
    const Real x = in[a];
    const Real y = in[b];
    out[a] = x * c - y * s;
    out[b] = x * s + y * c;
  }
};
// Rounds a row of keys or values into the cache.
template <class Real>
struct AppendRow {
  const Real* in;
  uint16_t* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    out[i] = f32_to_bf16(static_cast<float>(in[i]));
  }
};
struct CopyRow {
  const uint16_t* in;
  uint16_t* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const { out[i] = in[i]; }
};

// Which cached positions a head sees.
struct Sight {
  uint64_t first = 0;
  uint64_t hole_head = 0;  // [hole_begin, hole_end) is unseen through this KV head
  uint64_t hole_begin = 0;
  uint64_t hole_end = 0;
  GODWIT_HOST_DEVICE bool sees(uint64_t position, uint64_t kv_head) const {
    const bool in_hole = kv_head == hole_head && position >= hole_begin && position < hole_end;
    return position >= first && !in_hole;
  }
};

// One layer's attention. `cache` points at the layer's K of position 0; V lies kv_width further.
struct AttendShape {
  const uint16_t* cache;
  uint64_t position_stride;  // numbers
  uint64_t n_positions;      // the newest included
  uint64_t n_heads, n_kv_heads, head_dim;
  Sight sight;
  bool wrong_map;
  GODWIT_HOST_DEVICE uint64_t kv_head(uint64_t head) const {
    return wrong_map ? head % n_kv_heads : head / (n_heads / n_kv_heads);
  }
  GODWIT_HOST_DEVICE const uint16_t* key(uint64_t position, uint64_t head) const {
    return cache + position * position_stride + kv_head(head) * head_dim;
  }
  GODWIT_HOST_DEVICE const uint16_t* value(uint64_t position, uint64_t head) const {
    return key(position, head) + n_kv_heads * head_dim;
  }
};
inline constexpr double kUnseen = -1e300;

// scores[position, head]
template <class Real>
struct Scores {
  AttendShape shape;
  const Real* q;
  Real scale;
  double* scores;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    const uint64_t head = i % shape.n_heads;
    const uint64_t position = i / shape.n_heads;
    if (!shape.sight.sees(position, shape.kv_head(head))) {
      scores[i] = kUnseen;
      return;
    }
    const uint16_t* key = shape.key(position, head);
    Real sum = 0;
    for (uint64_t d = 0; d < shape.head_dim; d += 8) {
      const auto eight = *reinterpret_cast<const EightWeights*>(key + d);
      for (uint64_t j = 0; j < 8; ++j) {
        sum += static_cast<Real>(bf16_to_f32(eight.values[j])) * q[head * shape.head_dim + d + j];
      }
    }
    scores[i] = static_cast<double>(sum * scale);
  }
};
// Maximum and sum of exponentials of a chunk of positions: element chunk * n_heads + head.
struct ChunkSums {
  AttendShape shape;
  const double* scores;
  double* maxima;
  double* sums;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    const uint64_t head = i % shape.n_heads;
    const uint64_t begin = i / shape.n_heads * kPositionChunk;
    const uint64_t end =
        begin + kPositionChunk < shape.n_positions ? begin + kPositionChunk : shape.n_positions;
    double largest = kUnseen;
    for (uint64_t p = begin; p < end; ++p) {
      const double s = scores[p * shape.n_heads + head];
      // Written so that a NaN is kept.
      largest = s <= largest ? largest : s;
    }
    double sum = 0;
    for (uint64_t p = begin; p < end; ++p) {
      const double s = scores[p * shape.n_heads + head];
      if (s != kUnseen) sum += std::exp(s - largest);
    }
    maxima[i] = largest;
    sums[i] = sum;
  }
};
struct HeadSums {
  uint64_t n_heads, n_chunks;
  const double* maxima;
  const double* sums;
  double* head_maxima;
  double* head_sums;
  GODWIT_HOST_DEVICE void operator()(size_t head) const {
    double largest = kUnseen;
    for (uint64_t c = 0; c < n_chunks; ++c) {
      const double m = maxima[c * n_heads + head];
      largest = m <= largest ? largest : m;
    }
    double sum = 0;
    for (uint64_t c = 0; c < n_chunks; ++c) {
      const double s = sums[c * n_heads + head];
      if (s != 0) sum += s * std::exp(maxima[c * n_heads + head] - largest);
    }
    head_maxima[head] = largest;
    head_sums[head] = sum;
  }
};
// partial[(head, dim), chunk] of the weighted values; weights in double.
struct ValuePartial {
  AttendShape shape;
  const double* scores;
  const double* head_maxima;
  const double* head_sums;
  double* partial;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    const uint64_t width = shape.n_heads * shape.head_dim;
    const uint64_t column = i % width;  // neighbours read neighbouring values
    const uint64_t chunk = i / width;
    const uint64_t head = column / shape.head_dim;
    const uint64_t dim = column % shape.head_dim;
    const uint64_t begin = chunk * kPositionChunk;
    const uint64_t end =
        begin + kPositionChunk < shape.n_positions ? begin + kPositionChunk : shape.n_positions;
    double sum = 0;
    for (uint64_t p = begin; p < end; ++p) {
      const double s = scores[p * shape.n_heads + head];
      if (s == kUnseen) continue;
      const auto v = static_cast<double>(bf16_to_f32(shape.value(p, head)[dim]));
      sum += std::exp(s - head_maxima[head]) * v;
    }
    partial[column * chunks_of(shape.n_positions, kPositionChunk) + chunk] = sum / head_sums[head];
  }
};
template <class Real>
struct AddValues {
  const double* partial;
  uint64_t n_chunks;
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    double sum = 0;
    for (uint64_t c = 0; c < n_chunks; ++c) sum += partial[i * n_chunks + c];
    out[i] = static_cast<Real>(sum);
  }
};

template <class Real>
struct GateTimesUp {
  const Real* gate;
  const Real* up;
  bool silu;
  Real* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const {
    const Real g = gate[i];
    out[i] = (silu ? g / (Real(1) + std::exp(-g)) : g) * up[i];
  }
};
template <class Real>
struct Narrow {
  const Real* in;
  float* out;
  GODWIT_HOST_DEVICE void operator()(size_t i) const { out[i] = static_cast<float>(in[i]); }
};

}  // namespace godwit::grader
