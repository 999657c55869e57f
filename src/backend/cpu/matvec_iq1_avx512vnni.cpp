// Computes: what matvec_grid_generic.cpp says, for IQ1_S and IQ1_M.
// Shapes and types: weights in tiles of low_bit_tiles.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row; 16 rows by up to 8 tokens at a time.
// Arithmetic: exact. All within a block of 256 columns is an integer. Dots of codes fit int16
// (IQ1_S:
//   32 * 2 * 127; IQ1_M, codes 4 level + (1 where delta is 1): 16 * 9 * 127), so that vpdpwssd
//   multiplies them by the scale; what the codes are too large by comes off with the sums of x.
// Reference: matvec_grid_generic.cpp.
// Tried and rejected: numbers of entries as in the file, looked up by vpermi2b: 0.2-0.25 of the
// speed
//   (docs/NEGATIVE_RESULTS.md).
#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx512.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/iq1_tables.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"

namespace godwit::cpu::avx512vnni {
namespace {

// The low and the high nibble of each byte, as the int16 of the row's lane.
[[gnu::always_inline]] inline __m512i nibble_pairs(const uint8_t (&bytes)[16], uint32_t mask) {
  constexpr int kOrAnd = 0xa8;  // (a | b) & c
  const __m512i both = _mm512_cvtepu8_epi32(load128(bytes));
  return _mm512_ternarylogic_epi32(both, _mm512_slli_epi32(both, 12),
                                   _mm512_set1_epi32(static_cast<int>(mask)), kOrAnd);
}

// x times both int16 of each lane, added to isum. word: that pair of x.
[[gnu::always_inline]] inline __m512i add_pairs(__m512i isum, __m512i pairs, int32_t word) {
  return _mm512_dpwssd_epi32(isum, pairs, _mm512_set1_epi32(word));
}

struct IQ1_S {
  using Tile = TileIQ1_S;

  // isums[t] += scales * dot of the 32 columns of a group, from q on.
  template <size_t kGroup, size_t kTokens>
  [[gnu::always_inline]] static void add_group(const Tile::Chunk& chunk, __m512i scales,
                                               const int8_t* q, size_t q_stride,
                                               __m512i (&isums)[kTokens]) {
    __m512i codes[8];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m512i all = load(chunk.codes[j]);
      codes[j] = two_bits<2 * kGroup>(all);
      codes[4 + j] = two_bits<2 * kGroup + 1>(all);
    }
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512i dot = dot32(codes, q + t * q_stride, 0);
      isums[t] = _mm512_dpwssd_epi32(isums[t], dot, scales);
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, const Activations& x,
                                               size_t c, __m512i (&isums)[kTokens]) {
    const __m512i pairs = nibble_pairs(chunk.scales, 0x000f000f);
    const __m512i eightfold = _mm512_maskz_shuffle_epi8(
        0x5555555555555555, broadcast16(kIq1EightfoldScales.bytes), pairs);
    const __m512i offsets =
        _mm512_or_si512(_mm512_shuffle_epi8(broadcast16(kIq1Offsets.bytes), pairs),
                        _mm512_set1_epi32(static_cast<int>(0xff00ff00u)));
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      isums[t] = add_pairs(isums[t], offsets, x.sums[t * x.sum_stride + c]);
    }
    const int8_t* q = x.q + 64 * c;
    add_group<0>(chunk, _mm512_and_si512(eightfold, _mm512_set1_epi32(0xffff)), q, x.q_stride,
                 isums);
    add_group<1>(chunk, _mm512_srli_epi32(eightfold, 16), q + 32, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, __m512 (&sums)[kTokens]) {
    add_scaled(_mm512_mul_ps(_mm512_set1_ps(Tile::kUnit), load_halves(tile.d)), isums, x, sums);
  }
};

struct IQ1_M {
  using Tile = TileIQ1_M;

  // Bits kField + 1..kField of every byte as 4 level, plus `shift`.
  template <int kField>
  [[gnu::always_inline]] static __m512i shifted(__m512i codes, __m512i shift) {
    constexpr int kAndOr = 0xea;  // (a & b) | c
    const __m512i levels = move_bit<kField, 2>(codes);
    return _mm512_ternarylogic_epi32(levels, _mm512_set1_epi8(12), shift, kAndOr);
  }

  // isums[t] += scales * dot of the 16 columns of one half of a pair, from q on. early, late: where
  // the delta of the first and of the last eight is 1.
  template <int kField, size_t kTokens>
  [[gnu::always_inline]] static void add_half(const Tile::Chunk& chunk, __mmask16 early,
                                              __mmask16 late, __m512i scales, const int8_t* q,
                                              size_t q_stride, __m512i (&isums)[kTokens]) {
    const __m512i first = _mm512_maskz_set1_epi32(early, 0x01010101);
    const __m512i last = _mm512_maskz_set1_epi32(late, 0x01010101);
    const __m512i codes[4] = {
        shifted<kField>(load(chunk.codes[0]), first), shifted<kField>(load(chunk.codes[1]), first),
        shifted<kField>(load(chunk.codes[2]), last), shifted<kField>(load(chunk.codes[3]), last)};
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      isums[t] = _mm512_dpwssd_epi32(isums[t], dot16(codes, q + t * q_stride), scales);
    }
  }

  [[gnu::always_inline]] static __mmask16 clear_in(const uint8_t (&bits)[2]) {
    uint16_t set = 0;
    __builtin_memcpy(&set, bits, 2);
    return _knot_mask16(set);
  }

  template <size_t kPair, size_t kTokens>
  [[gnu::always_inline]] static void add_pair(const Tile::Chunk& chunk, const Activations& x,
                                              size_t c, __m512i (&isums)[kTokens]) {
    const uint8_t(&nibbles)[16] = chunk.scales[kPair];
    const __m512i s = nibble_pairs(nibbles, 0x00070007);
    const __m512i scales = _mm512_or_si512(_mm512_slli_epi32(s, 1), _mm512_set1_epi16(1));
    const __m512i offsets = _mm512_mullo_epi16(scales, _mm512_set1_epi16(-9));
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      isums[t] = add_pairs(isums[t], offsets, x.sums[t * x.sum_stride + 4 + 2 * c + kPair]);
    }
    const __m512i both = _mm512_cvtepu8_epi32(load128(nibbles));
    const __m512i twice = _mm512_slli_epi32(scales, 1);
    const int8_t* q = x.q + 32 * c + 16 * kPair;
    add_half<2 * kPair>(chunk, _mm512_testn_epi32_mask(both, _mm512_set1_epi32(0x08)),
                        clear_in(chunk.late[kPair][0]),
                        _mm512_and_si512(twice, _mm512_set1_epi32(0xffff)), q, x.q_stride, isums);
    add_half<2 * kPair + 4>(chunk, _mm512_testn_epi32_mask(both, _mm512_set1_epi32(0x80)),
                            clear_in(chunk.late[kPair][1]), _mm512_srli_epi32(twice, 16), q + 128,
                            x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, const Activations& x,
                                               size_t c, __m512i (&isums)[kTokens]) {
    add_pair<0>(chunk, x, c, isums);
    add_pair<1>(chunk, x, c, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, __m512 (&sums)[kTokens]) {
    add_scaled(_mm512_mul_ps(_mm512_set1_ps(Tile::kUnit), load_halves(tile.d)), isums, x, sums);
  }
};

template <class Kernel>
void run(const MatVecArgs& args) {
  run_rows<ChunkFrame<Kernel>, 8, 4, 2, 1>(args);
}

}  // namespace

void matvec_iq1_s(const MatVecArgs& args) { run<IQ1_S>(args); }
void matvec_iq1_m(const MatVecArgs& args) { run<IQ1_M>(args); }

}  // namespace godwit::cpu::avx512vnni
