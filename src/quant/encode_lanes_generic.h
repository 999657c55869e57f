// Eight lanes of f32 without any vector instruction: the definition of what encode_lanes_avx2.h
// computes, bit for bit. Unnamed namespace, since the twin is compiled with other flags.
#pragma once

#include <cstddef>

#include "quant/encode_kernels.h"

namespace godwit::quant {
namespace {

struct GenericLanes {
  float v[kLanes];

  template <class F>
  [[gnu::always_inline]] static GenericLanes each(F f) {
    GenericLanes r;
    for (size_t k = 0; k < kLanes; ++k) r.v[k] = f(k);
    return r;
  }
  static GenericLanes splat(float x) {
    return each([=](size_t) { return x; });
  }
  static GenericLanes load(const float* p) {
    return each([=](size_t k) { return p[k]; });
  }
  void store(float* p) const {
    for (size_t k = 0; k < kLanes; ++k) p[k] = v[k];
  }
  friend GenericLanes operator+(const GenericLanes& a, const GenericLanes& b) {
    return each([&](size_t k) { return a.v[k] + b.v[k]; });
  }
  friend GenericLanes operator-(const GenericLanes& a, const GenericLanes& b) {
    return each([&](size_t k) { return a.v[k] - b.v[k]; });
  }
  friend GenericLanes operator*(const GenericLanes& a, const GenericLanes& b) {
    return each([&](size_t k) { return a.v[k] * b.v[k]; });
  }
  // b where a is NaN, as the instructions have it.
  static GenericLanes max(const GenericLanes& a, const GenericLanes& b) {
    return each([&](size_t k) { return a.v[k] > b.v[k] ? a.v[k] : b.v[k]; });
  }
  static GenericLanes min(const GenericLanes& a, const GenericLanes& b) {
    return each([&](size_t k) { return a.v[k] < b.v[k] ? a.v[k] : b.v[k]; });
  }
  // value where a > b, 0 elsewhere.
  static GenericLanes where_greater(const GenericLanes& a, const GenericLanes& b,
                                    const GenericLanes& value) {
    return each([&](size_t k) { return a.v[k] > b.v[k] ? value.v[k] : 0.0f; });
  }
  // Bit k is set where a == b.
  static unsigned equal_mask(const GenericLanes& a, const GenericLanes& b) {
    unsigned mask = 0;
    for (size_t k = 0; k < kLanes; ++k) mask |= (a.v[k] == b.v[k] ? 1u : 0u) << k;
    return mask;
  }
};

}  // namespace
}  // namespace godwit::quant
