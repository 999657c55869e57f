// The few words in which the AVX2 kernels speak of lanes. A tile is worked on as two halves of
// eight rows; half h begins 32 * h bytes into a [64] array. There is no vpdpbusd: u8 x s8 products
// are added in pairs by vpmaddubsw, which must not saturate, and these in pairs by vpmaddwd.
// Included only by files compiled for AVX2; all in an unnamed namespace (see isa_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"

namespace godwit::cpu::avx2 {
namespace {

[[gnu::always_inline]] inline __m256i load(const uint8_t (&bytes)[64], size_t half) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32 * half));
}

[[gnu::always_inline]] inline __m128i load128(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

[[gnu::always_inline]] inline __m128i load64(const void* bytes) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(bytes));
}

// The eight binary16 values of one half, widened.
[[gnu::always_inline]] inline __m256 load_halves(const uint8_t (&halves)[32], size_t half) {
  return _mm256_cvtph_ps(load128(halves + 16 * half));
}

// Four activations in every lane.
[[gnu::always_inline]] inline __m256i broadcast4(const int8_t* q) {
  return _mm256_set1_epi32(load_dword(q));
}

// code | (bits & 16) in every byte.
[[gnu::always_inline]] inline __m256i merge_bit4(__m256i code, __m256i bits) {
  return _mm256_or_si256(code, _mm256_and_si256(bits, _mm256_set1_epi8(16)));
}

// Puts the eight bits of each byte of `high` on top of eight vectors of four-bit codes.
[[gnu::always_inline]] inline void merge_high_bits(__m256i high, __m256i (&codes)[8]) {
  codes[0] = merge_bit4(codes[0], _mm256_slli_epi16(high, 4));
  codes[1] = merge_bit4(codes[1], _mm256_slli_epi16(high, 3));
  codes[2] = merge_bit4(codes[2], _mm256_slli_epi16(high, 2));
  codes[3] = merge_bit4(codes[3], _mm256_slli_epi16(high, 1));
  codes[4] = merge_bit4(codes[4], high);
  codes[5] = merge_bit4(codes[5], _mm256_srli_epi16(high, 1));
  codes[6] = merge_bit4(codes[6], _mm256_srli_epi16(high, 2));
  codes[7] = merge_bit4(codes[7], _mm256_srli_epi16(high, 3));
}

// The sum of kCount products codes[first..] * q[4 * first..] as pairs in int16. The caller sees to
// it that kCount * 2 * (largest code) * 127 < 2^15.
template <size_t kFirst, size_t kCount, size_t kCodes>
[[gnu::always_inline]] inline __m256i pair_dots(const __m256i (&codes)[kCodes], const int8_t* q) {
  __m256i sum = _mm256_maddubs_epi16(codes[kFirst], broadcast4(q + 4 * kFirst));
#pragma GCC unroll 8
  for (size_t j = kFirst + 1; j < kFirst + kCount; ++j) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes[j], broadcast4(q + 4 * j)));
  }
  return sum;
}

// Stores the rows of one half that exist, for every token of the group.
template <size_t kTokens>
[[gnu::always_inline]] inline void store_sums(const __m256 (&sums)[kTokens], const TileJob& job,
                                              size_t half) {
  const int n_rows = static_cast<int>(job.n_rows) - static_cast<int>(8 * half);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(n_rows), lanes);
#pragma GCC unroll 16
  for (size_t t = 0; t < kTokens; ++t) {
    _mm256_maskstore_ps(job.y + t * job.y_stride + 8 * half, mask, sums[t]);
  }
}

}  // namespace
}  // namespace godwit::cpu::avx2
