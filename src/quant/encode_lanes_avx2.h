// The words of encode_lanes_generic.h in AVX2. Included only by files compiled for AVX2.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "quant/encode_kernels.h"

namespace godwit::quant {
namespace {

struct Avx2Lanes {
  __m256 v;

  static Avx2Lanes splat(float x) { return {_mm256_set1_ps(x)}; }
  static Avx2Lanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }

  friend Avx2Lanes operator+(Avx2Lanes a, Avx2Lanes b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Avx2Lanes operator-(Avx2Lanes a, Avx2Lanes b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Avx2Lanes operator*(Avx2Lanes a, Avx2Lanes b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static Avx2Lanes max(Avx2Lanes a, Avx2Lanes b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Avx2Lanes min(Avx2Lanes a, Avx2Lanes b) { return {_mm256_min_ps(a.v, b.v)}; }
  static Avx2Lanes where_greater(Avx2Lanes a, Avx2Lanes b, Avx2Lanes value) {
    return {_mm256_and_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ), value.v)};
  }
  static unsigned equal_mask(Avx2Lanes a, Avx2Lanes b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)));
  }
};

}  // namespace
}  // namespace godwit::quant
