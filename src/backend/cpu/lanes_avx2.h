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

// Sixteen bytes in both halves of a register.
[[gnu::always_inline]] inline __m256i broadcast16(const uint8_t (&bytes)[16]) {
  return _mm256_broadcastsi128_si256(load128(bytes));
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

// Bit `bit` of every byte, moved to bit kTo (the others are anything). After inlining a constant.
template <size_t kTo>
[[gnu::always_inline]] inline __m256i move_bit(__m256i bytes, size_t bit) {
  return bit <= kTo ? _mm256_slli_epi16(bytes, static_cast<int>(kTo - bit))
                    : _mm256_srli_epi16(bytes, static_cast<int>(bit - kTo));
}

[[gnu::always_inline]] inline __m256i high_bit(__m256i high, size_t bit) {
  return move_bit<4>(high, bit);
}

// The low (kUpper 0) or high four bits of every byte.
template <size_t kUpper>
[[gnu::always_inline]] inline __m256i nibbles(__m256i both) {
  const __m256i codes = kUpper == 0 ? both : _mm256_srli_epi16(both, 4);
  return _mm256_and_si256(codes, _mm256_set1_epi8(15));
}

// Bits 2 kPart + 1..2 kPart of every byte.
template <size_t kPart>
[[gnu::always_inline]] inline __m256i two_bits(__m256i codes) {
  if constexpr (kPart != 0) codes = _mm256_srli_epi16(codes, 2 * kPart);
  return _mm256_and_si256(codes, _mm256_set1_epi8(3));
}

// Adds the products of the kPart-th quarter of 16 columns of codes of two bits, in pairs of 16
// bits, for each token.
template <size_t kPart, size_t kTokens>
[[gnu::always_inline]] inline void add_two_bits(const uint8_t (&codes)[4][64], size_t half,
                                                const int8_t* q, size_t q_stride,
                                                __m256i (&pairs)[kTokens]) {
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m256i w = two_bits<kPart>(load(codes[j], half));
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i x = broadcast4(q + t * q_stride + 16 * kPart + 4 * j);
      pairs[t] = _mm256_add_epi16(pairs[t], _mm256_maddubs_epi16(w, x));
    }
  }
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

// A dword lane is a row. One token: both halves of the tile at once, which share the activations.
// More: one half after the other, else the sixteen registers spill.
template <class Kernel, size_t kTokens, bool kPrefetch>
[[gnu::always_inline]] inline void multiply_by_halves(const TileJob& job) {
  if constexpr (kTokens == 1) {
    Kernel::template multiply_halves<1, 2, kPrefetch>(job, 0);
  } else {
    Kernel::template multiply_halves<kTokens, 1, kPrefetch>(job, 0);
    Kernel::template multiply_halves<kTokens, 1, false>(job, 1);
  }
}

}  // namespace
}  // namespace godwit::cpu::avx2
