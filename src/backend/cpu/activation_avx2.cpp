// Computes: what activation_generic.cpp says.
// Preconditions: cols is a multiple of the block; x any alignment.
// Work split: one token; 8 values per vector.
// Arithmetic: exact: the same two divisions, one product and one rounding per value; bits of
//   magnitudes compare as integers, sums of q are integers.
// Reference: activation_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/activation_kernels.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/matvec_args.h"

namespace godwit::cpu::avx2 {
namespace {

// Finds the scale of a block and stores it; returns what to multiply its values by.
template <size_t kBlock>
[[gnu::always_inline]] inline float store_scale(const float* x, float* scale) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i max = _mm256_setzero_si256();
#pragma GCC unroll 16
  for (size_t i = 0; i < kBlock; i += 8) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + i));
    max = _mm256_max_epi32(max, _mm256_and_si256(bits, magnitude));
  }
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  const ActivationScale s = activation_scale(static_cast<uint32_t>(_mm_cvtsi128_si32(m)));
  *scale = s.scale;
  return s.inverse;
}

[[gnu::always_inline]] inline __m256i round8(const float* x, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

// 32 values as int8. Zero times infinity is NaN, which would convert to the least integer: `keep`
// holds blocks without a scale at 0.
[[gnu::always_inline]] inline __m256i round32(const float* x, __m256 inverse, __m256i keep) {
  const __m256i low = _mm256_packs_epi32(round8(x, inverse), round8(x + 8, inverse));
  const __m256i high = _mm256_packs_epi32(round8(x + 16, inverse), round8(x + 24, inverse));
  const __m256i mixed = _mm256_packs_epi16(low, high);
  // The packs worked in 128-bit lanes: put the dwords back in order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return _mm256_and_si256(_mm256_permutevar8x32_epi32(mixed, order), keep);
}

[[gnu::always_inline]] inline __m256i keep_mask(float inverse) {
  return _mm256_set1_epi32(inverse == 0.0f ? 0 : -1);
}

[[gnu::always_inline]] inline void store32(int8_t* q, __m256i bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), bytes);
}

// Sums of four adjacent bytes each.
[[gnu::always_inline]] inline void store_sums_of_four(__m256i bytes, int32_t* fours) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(fours), sums);
}

}  // namespace

void quantize_block32(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 32; ++b, x += 32) {
    const float inverse = store_scale<32>(x, out.scales + b);
    const __m256i q = round32(x, _mm256_set1_ps(inverse), keep_mask(inverse));
    store32(out.q + 32 * b, q);
    int32_t fours[8];
    store_sums_of_four(q, fours);
    out.sums[b] = ((fours[0] + fours[1]) + (fours[2] + fours[3])) +
                  ((fours[4] + fours[5]) + (fours[6] + fours[7]));
  }
}

void quantize_block256(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 256; ++b, x += 256) {
    const float inverse = store_scale<256>(x, out.scales + b);
    const __m256 factor = _mm256_set1_ps(inverse);
    const __m256i keep = keep_mask(inverse);
    int32_t fours[64];
    for (size_t i = 0; i < 256; i += 32) {
      const __m256i q = round32(x + i, factor, keep);
      store32(out.q + 256 * b + i, q);
      store_sums_of_four(q, fours + i / 4);
    }
    store_sum_words(fours, out.sums + kSumWordsPerBlock256 * b);
  }
}

}  // namespace godwit::cpu::avx2
