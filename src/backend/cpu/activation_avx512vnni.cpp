// Computes: what activation_generic.cpp says.
// Preconditions: cols is a multiple of the block; x any alignment.
// Work split: one token; 16 values per vector.
// Arithmetic: exact: the same two divisions, one product and one rounding per value; bits of
//   magnitudes compare as integers, sums of q are integers.
// Reference: activation_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/activation_kernels.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/matvec_args.h"

namespace godwit::cpu::avx512vnni {
namespace {

[[gnu::always_inline]] inline __m512i max_magnitude(__m512i max, const float* x) {
  const __m512i magnitude = _mm512_castps_si512(_mm512_loadu_ps(x));
  const __m512i bits = _mm512_and_si512(magnitude, _mm512_set1_epi32(0x7fffffff));
  return _mm512_max_epi32(max, bits);
}

// Finds the scale of a block and stores it; returns what to multiply its values by.
template <size_t kBlock>
[[gnu::always_inline]] inline float store_scale(const float* x, float* scale) {
  __m512i max = _mm512_setzero_si512();
#pragma GCC unroll 16
  for (size_t i = 0; i < kBlock; i += 16) max = max_magnitude(max, x + i);
  const ActivationScale s = activation_scale(static_cast<uint32_t>(_mm512_reduce_max_epi32(max)));
  *scale = s.scale;
  return s.inverse;
}

// Sixteen values as int8. Zero times infinity is NaN, which would convert to the least integer:
// the mask keeps blocks without a scale at 0.
[[gnu::always_inline]] inline __m128i round16(const float* x, __m512 inverse, __mmask16 keep) {
  const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x), inverse);
  return _mm512_cvtepi32_epi8(_mm512_maskz_cvtps_epi32(keep, scaled));
}

[[gnu::always_inline]] inline __mmask16 keep_mask(float inverse) {
  return static_cast<__mmask16>(inverse == 0.0f ? 0 : 0xffff);
}

[[gnu::always_inline]] inline void store16(int8_t* q, __m128i bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), bytes);
}

// Sums of four adjacent bytes each.
[[gnu::always_inline]] inline __m512i sums_of_four(const int8_t* q) {
  const __m512i bytes = _mm512_loadu_si512(q);
  return _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes);
}

}  // namespace

void quantize_block32(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 32; ++b, x += 32) {
    const float inverse = store_scale<32>(x, out.scales + b);
    const __m512 factor = _mm512_set1_ps(inverse);
    const __mmask16 keep = keep_mask(inverse);
    const __m128i low = round16(x, factor, keep);
    const __m128i high = round16(x + 16, factor, keep);
    store16(out.q + 32 * b, low);
    store16(out.q + 32 * b + 16, high);
    const __m256i all = _mm256_set_m128i(high, low);
    const __m256i fours = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), all);
    out.sums[b] = _mm512_reduce_add_epi32(_mm512_zextsi256_si512(fours));
  }
}

void quantize_block256(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 256; ++b, x += 256) {
    int8_t* q = out.q + 256 * b;
    const float inverse = store_scale<256>(x, out.scales + b);
    const __m512 factor = _mm512_set1_ps(inverse);
    const __mmask16 keep = keep_mask(inverse);
#pragma GCC unroll 4
    for (size_t i = 0; i < 256; i += 16) store16(q + i, round16(x + i, factor, keep));
    int32_t fours[64];
    for (size_t i = 0; i < 4; ++i) _mm512_storeu_si512(fours + 16 * i, sums_of_four(q + 64 * i));
    store_sum_words(fours, out.sums + kSumWordsPerBlock256 * b);
  }
}

}  // namespace godwit::cpu::avx512vnni
