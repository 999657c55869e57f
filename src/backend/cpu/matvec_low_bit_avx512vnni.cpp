// Computes: what matvec_low_bit_generic.cpp says.
// Shapes and types: weights in tiles of low_bit_tiles.h, [rows / 16, cols / tile]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / tile columns * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row; 16 rows by up to 8 tokens at a time.
// Arithmetic: exact. Codes are raised to be unsigned; a dot starts at -offset * sum(x), and u8 x s8
//   dots accumulate in int32 without saturation.
// Reference: matvec_low_bit_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx512.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/nibble_tables.h"

namespace godwit::cpu::avx512vnni {
namespace {

// The 32 columns of one part of a tile: codes, of which kOffset is to be taken off.
template <size_t kPart>
[[gnu::always_inline]] inline void unpack(const TileMXFP4& tile, __m512i (&codes)[8]) {
  const __m512i table = broadcast16(kFp4Raised.bytes);
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i both = load(tile.nibbles[j]);
    codes[j] = _mm512_shuffle_epi8(table, nibbles<0>(both));
    codes[4 + j] = _mm512_shuffle_epi8(table, nibbles<1>(both));
  }
}
template <size_t kPart>
[[gnu::always_inline]] inline void unpack(const TileQ2_0& tile, __m512i (&codes)[8]) {
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i all = load(tile.codes[j]);
    codes[j] = two_bits<2 * kPart>(all);
    codes[4 + j] = two_bits<2 * kPart + 1>(all);
  }
}
template <size_t kPart>
[[gnu::always_inline]] inline void unpack(const TileQ1_0& tile, __m512i (&codes)[8]) {
  const __m512i all = load(tile.codes[kPart]);
  codes[0] = field<0, 1, 1>(all);
  codes[1] = field<1, 1, 1>(all);
  codes[2] = field<2, 1, 1>(all);
  codes[3] = field<3, 1, 1>(all);
  codes[4] = field<4, 1, 1>(all);
  codes[5] = field<5, 1, 1>(all);
  codes[6] = field<6, 1, 1>(all);
  codes[7] = field<7, 1, 1>(all);
}

template <class Tile>
constexpr int kOffset = 1;
template <>
constexpr int kOffset<TileMXFP4> = kFp4Offset;

[[gnu::always_inline]] inline __m512 tile_scales(const TileMXFP4& tile) {
  // 2^(e - 128): the exponent e - 1, or one of two subnormals; the larger of the two words.
  const __m512i e = _mm512_cvtepu8_epi32(load128(tile.exponents));
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
  const __m512i subnormal = _mm512_slli_epi32(_mm512_add_epi32(e, one), 21);
  return _mm512_castsi512_ps(_mm512_max_epi32(normal, subnormal));
}
template <class Tile>
[[gnu::always_inline]] inline __m512 tile_scales(const Tile& tile) {
  return load_halves(tile.scales);
}

template <class Tile_>
struct LowBit {
  using Tile = Tile_;
  static constexpr size_t kColumns = Tile::kColumns;
  static constexpr size_t kParts = kColumns / 32;

  // scaled[t] += dx * (dot less the offset) of one part; b is its block of x.
  template <size_t kPart, size_t kTokens>
  [[gnu::always_inline]] static void add_part(const Tile& tile, const Activations& x, size_t b,
                                              __m512 (&scaled)[kTokens]) {
    __m512i codes[8];
    unpack<kPart>(tile, codes);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int32_t start = -kOffset<Tile> * x.sums[t * x.sum_stride + b];
      const __m512 dot = _mm512_cvtepi32_ps(dot32(codes, x.q + t * x.q_stride + 32 * b, start));
      const __m512 dx = _mm512_set1_ps(x.scales[t * x.scale_stride + b]);
      scaled[t] = kPart == 0 ? _mm512_mul_ps(dot, dx) : _mm512_fmadd_ps(dot, dx, scaled[t]);
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_tile(const Tile& tile, const Activations& x, size_t b,
                                              __m512 (&sums)[kTokens]) {
    __m512 scaled[kTokens];
    add_part<0>(tile, x, kParts * b, scaled);
    if constexpr (kParts > 1) add_part<1>(tile, x, kParts * b + 1, scaled);
    if constexpr (kParts > 2) {
      add_part<2>(tile, x, kParts * b + 2, scaled);
      add_part<3>(tile, x, kParts * b + 3, scaled);
    }
    const __m512 d = tile_scales(tile);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) sums[t] = _mm512_fmadd_ps(scaled[t], d, sums[t]);
  }
};

// NVFP4: 16 columns, then their scale.
struct SmallBlocks {
  using Tile = TileNVFP4;
  static constexpr size_t kColumns = Tile::kColumns;

  template <size_t kSide>
  [[gnu::always_inline]] static void unpack_side(const Tile::Part& part, __m512i (&codes)[4]) {
    const __m512i table = broadcast16(kFp4Raised.bytes);
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      codes[j] = _mm512_shuffle_epi8(table, nibbles<kSide>(load(part.nibbles[j])));
    }
  }

  [[gnu::always_inline]] static __m512 side_scales(const uint8_t (&scales)[16]) {
    const __m256i halves = _mm256_slli_epi16(_mm256_cvtepu8_epi16(load128(scales)), 7);
    return _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(128.0f));
  }

  // -kFp4Offset times the sum of 16 activations, in every lane.
  [[gnu::always_inline]] static __m512i lowered_sum(const int8_t* q) {
    const __m128i raised = _mm_xor_si128(load128(q), _mm_set1_epi8(-128));
    const __m128i eights = _mm_sad_epu8(raised, _mm_setzero_si128());
    const __m128i sum = _mm_add_epi32(eights, _mm_shuffle_epi32(eights, 0x4e));
    const __m128i lowered =
        _mm_mullo_epi32(_mm_sub_epi32(_mm_set1_epi32(16 * 128), sum), _mm_set1_epi32(kFp4Offset));
    return _mm512_broadcastd_epi32(lowered);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_part(const Tile::Part& part, const Activations& x,
                                              size_t b, __m512 (&sums)[kTokens]) {
    __m512i first[4];
    __m512i second[4];
    unpack_side<0>(part, first);
    unpack_side<1>(part, second);
    const __m512 d0 = side_scales(part.scales[0]);
    const __m512 d1 = side_scales(part.scales[1]);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int8_t* q = x.q + t * x.q_stride + 32 * b;
      const __m512 dx = _mm512_set1_ps(x.scales[t * x.scale_stride + b]);
      const __m512i low0 = lowered_sum(q);
      const __m512i both = _mm512_set1_epi32(-kFp4Offset * x.sums[t * x.sum_stride + b]);
      const __m512i dot0 = _mm512_add_epi32(dot16(first, q), low0);
      const __m512i dot1 = _mm512_add_epi32(dot16(second, q + 16), _mm512_sub_epi32(both, low0));
      sums[t] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dot0), dx), d0, sums[t]);
      sums[t] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dot1), dx), d1, sums[t]);
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_tile(const Tile& tile, const Activations& x, size_t b,
                                              __m512 (&sums)[kTokens]) {
    add_part(tile.parts[0], x, 2 * b, sums);
    add_part(tile.parts[1], x, 2 * b + 1, sums);
  }
};

template <class Kernel>
void run(const MatVecArgs& args) {
  run_rows<TileFrame<Kernel>, 8, 4, 2, 1>(args);
}

}  // namespace

void matvec_mxfp4(const MatVecArgs& args) { run<LowBit<TileMXFP4>>(args); }
void matvec_nvfp4(const MatVecArgs& args) { run<SmallBlocks>(args); }
void matvec_q1_0(const MatVecArgs& args) { run<LowBit<TileQ1_0>>(args); }
void matvec_q2_0(const MatVecArgs& args) { run<LowBit<TileQ2_0>>(args); }

}  // namespace godwit::cpu::avx512vnni
