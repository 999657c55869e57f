// The few words in which the AVX-512 kernels speak of lanes: loads, broadcasts, stores of a tile.
// Included only by files compiled for AVX-512; all in an unnamed namespace (see isa_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"

namespace godwit::cpu::avx512vnni {
namespace {

[[gnu::always_inline]] inline __m512i load(const uint8_t (&bytes)[64]) {
  return _mm512_loadu_si512(bytes);
}

[[gnu::always_inline]] inline __m256i load256(const void* bytes) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
}

// Sixteen binary16 values, widened.
[[gnu::always_inline]] inline __m512 load_halves(const uint8_t (&halves)[32]) {
  return _mm512_cvtph_ps(load256(halves));
}

// Four activations in every lane.
[[gnu::always_inline]] inline __m512i broadcast4(const int8_t* q) {
  return _mm512_set1_epi32(load_dword(q));
}

[[gnu::always_inline]] inline __m128i load128(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

// Sixteen bytes in all quarters of a register.
[[gnu::always_inline]] inline __m512i broadcast16(const uint8_t (&bytes)[16]) {
  return _mm512_broadcast_i32x4(load128(bytes));
}

// start plus the dot of 32 columns, in two chains.
[[gnu::always_inline]] inline __m512i dot32(const __m512i (&codes)[8], const int8_t* q, int start) {
  __m512i even = _mm512_set1_epi32(start);
  __m512i odd = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (size_t j = 0; j < 8; j += 2) {
    even = _mm512_dpbusd_epi32(even, codes[j], broadcast4(q + 4 * j));
    odd = _mm512_dpbusd_epi32(odd, codes[j + 1], broadcast4(q + 4 * j + 4));
  }
  return _mm512_add_epi32(even, odd);
}

[[gnu::always_inline]] inline __m512i dot16(const __m512i (&codes)[4], const int8_t* q) {
  __m512i dot = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) dot = _mm512_dpbusd_epi32(dot, codes[j], broadcast4(q + 4 * j));
  return dot;
}

// Bits kFrom + kBits - 1..kFrom of every byte, moved to bit kTo and up; the others are 0. One
// affine map over bits instead of a shift and a mask: two units take either, and a third is left
// over.
template <int kFrom, int kBits, int kTo>
[[gnu::always_inline]] inline __m512i field(__m512i bytes) {
  if constexpr (kFrom == kTo) {
    constexpr int kMask = ((1 << kBits) - 1) << kTo;
    return _mm512_and_si512(bytes, _mm512_set1_epi8(static_cast<char>(kMask)));
  } else {
    uint64_t matrix = 0;  // byte 7 - i: the bits of the source whose sum is bit i
    for (int i = 0; i < kBits; ++i) matrix |= uint64_t{1} << (kFrom + i + 8 * (7 - kTo - i));
    const __m512i rows = _mm512_set1_epi64(static_cast<int64_t>(matrix));
    return _mm512_gf2p8affine_epi64_epi8(bytes, rows, 0);
  }
}

// The low (kUpper 0) or high four bits of every byte.
template <size_t kUpper>
[[gnu::always_inline]] inline __m512i nibbles(__m512i both) {
  return field<4 * kUpper, 4, 0>(both);
}

// Bits 2 kPart + 1..2 kPart of every byte.
template <size_t kPart>
[[gnu::always_inline]] inline __m512i two_bits(__m512i codes) {
  return field<2 * kPart, 2, 0>(codes);
}

// Bit kBit of every byte, moved to bit kTo (the others are anything).
template <int kBit, int kTo>
[[gnu::always_inline]] inline __m512i move_bit(__m512i bytes) {
  if constexpr (kBit <= kTo) {
    return _mm512_slli_epi16(bytes, kTo - kBit);
  } else {
    return _mm512_srli_epi16(bytes, kBit - kTo);
  }
}

// code | (bits & 16) in every byte.
[[gnu::always_inline]] inline __m512i merge_bit4(__m512i code, __m512i bits) {
  constexpr int kOrAnd = 0xf8;  // a | (b & c)
  return _mm512_ternarylogic_epi32(code, bits, _mm512_set1_epi8(16), kOrAnd);
}

// Puts the eight bits of each byte of `high` on top of eight vectors of four-bit codes.
[[gnu::always_inline]] inline void merge_high_bits(__m512i high, __m512i (&codes)[8]) {
  codes[0] = merge_bit4(codes[0], _mm512_slli_epi16(high, 4));
  codes[1] = merge_bit4(codes[1], _mm512_slli_epi16(high, 3));
  codes[2] = merge_bit4(codes[2], _mm512_slli_epi16(high, 2));
  codes[3] = merge_bit4(codes[3], _mm512_slli_epi16(high, 1));
  codes[4] = merge_bit4(codes[4], high);
  codes[5] = merge_bit4(codes[5], _mm512_srli_epi16(high, 1));
  codes[6] = merge_bit4(codes[6], _mm512_srli_epi16(high, 2));
  codes[7] = merge_bit4(codes[7], _mm512_srli_epi16(high, 3));
}

// Stores the rows that exist of row tile `tile`, for every token of the group.
template <size_t kTokens>
[[gnu::always_inline]] inline void store_sums(const __m512 (&sums)[kTokens], const TileJob& job,
                                              size_t tile) {
  const size_t n_rows = job.n_rows - kTileRows * tile;
  const auto mask = static_cast<__mmask16>(n_rows < kTileRows ? (1u << n_rows) - 1 : 0xffffu);
#pragma GCC unroll 16
  for (size_t t = 0; t < kTokens; ++t) {
    _mm512_mask_storeu_ps(job.y + t * job.y_stride + kTileRows * tile, mask, sums[t]);
  }
}

}  // namespace
}  // namespace godwit::cpu::avx512vnni
