// Computes: what matvec_low_bit_generic.cpp says.
// Shapes and types: weights in tiles of low_bit_tiles.h, [rows / 16, cols / tile]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / tile columns * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: see multiply_by_halves(); up to 4 tokens at a time.
// Arithmetic: exact. vpmaddubsw sums fit int16: four of 24 * 127 * 2 for MXFP4, whose values are
//   raised by 12, eight of 3 * 127 * 2 and of 2 * 127 * 2 for Q2_0 and Q1_0. NVFP4 takes |value|
//   and moves its sign to x, since there are no sums of x over its 16 columns: four of 12 * 127
//   * 2.
// Reference: matvec_low_bit_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx2.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/nibble_tables.h"

namespace godwit::cpu::avx2 {
namespace {

// Columns 32 kPart + 4 j.. of one half of the rows; see Codes for what is added to them.
template <size_t kPart>
[[gnu::always_inline]] inline __m256i part_codes(const TileMXFP4& tile, size_t half, size_t j) {
  const __m256i both = load(tile.nibbles[j % 4], half);
  const __m256i codes = j < 4 ? nibbles<0>(both) : nibbles<1>(both);
  return _mm256_shuffle_epi8(broadcast16(kFp4Raised.bytes), codes);
}
template <size_t kPart>
[[gnu::always_inline]] inline __m256i part_codes(const TileQ2_0& tile, size_t half, size_t j) {
  const __m256i codes = load(tile.codes[j % 4], half);
  return j < 4 ? two_bits<2 * kPart>(codes) : two_bits<2 * kPart + 1>(codes);
}
template <size_t kPart>
[[gnu::always_inline]] inline __m256i part_codes(const TileQ1_0& tile, size_t half, size_t j) {
  const __m256i bits = move_bit<1>(load(tile.codes[kPart], half), j);
  return _mm256_and_si256(bits, _mm256_set1_epi8(2));
}

[[gnu::always_inline]] inline __m256 tile_scales(const TileMXFP4& tile, size_t half) {
  // 2^(e - 128): the exponent e - 1, or one of two subnormals; the larger of the two words.
  const __m256i e = _mm256_cvtepu8_epi32(load64(tile.exponents + 8 * half));
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
  const __m256i subnormal = _mm256_slli_epi32(_mm256_add_epi32(e, one), 21);
  return _mm256_castsi256_ps(_mm256_max_epi32(normal, subnormal));
}
template <class Tile>
[[gnu::always_inline]] inline __m256 tile_scales(const Tile& tile, size_t half) {
  return load_halves(tile.scales, half);
}

// weight = scale * (code - kOffset); pairs of kRun vectors are added in int16.
template <class Tile>
struct Codes;
template <>
struct Codes<TileMXFP4> {
  static constexpr size_t kRun = 4;
  static constexpr int kOffset = kFp4Offset;
};
template <>
struct Codes<TileQ2_0> {
  static constexpr size_t kRun = 8;
  static constexpr int kOffset = 1;
};
template <>
struct Codes<TileQ1_0> {
  static constexpr size_t kRun = 8;
  static constexpr int kOffset = 1;
};

template <class Tile_>
struct LowBit {
  using Tile = Tile_;
  using Code = Codes<Tile>;
  static constexpr size_t kColumns = Tile::kColumns;
  static constexpr size_t kParts = kColumns / 32;

  // dots[t] = the dot of one part; q points at its columns.
  template <size_t kPart, size_t kTokens>
  [[gnu::always_inline]] static void multiply_part(const Tile& tile, size_t half, const int8_t* q,
                                                   size_t q_stride, __m256i (&dots)[kTokens]) {
    __m256i pairs[kTokens];
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      const __m256i codes = part_codes<kPart>(tile, half, j);
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i products = _mm256_maddubs_epi16(codes, broadcast4(q + t * q_stride + 4 * j));
        pairs[t] = j % Code::kRun == 0 ? products : _mm256_add_epi16(pairs[t], products);
        if (j % Code::kRun == Code::kRun - 1) {
          const __m256i run = _mm256_madd_epi16(pairs[t], _mm256_set1_epi16(1));
          dots[t] = j < Code::kRun ? run : _mm256_add_epi32(dots[t], run);
        }
      }
    }
  }

  // scaled[t] += dx * (dot less the offset) of one part; b is its block of x.
  template <size_t kPart, size_t kTokens>
  [[gnu::always_inline]] static void add_part(const Tile& tile, size_t half, const Activations& x,
                                              size_t b, __m256 (&scaled)[kTokens]) {
    __m256i dots[kTokens];
    multiply_part<kPart>(tile, half, x.q + 32 * b, x.q_stride, dots);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i offset = _mm256_set1_epi32(Code::kOffset * x.sums[t * x.sum_stride + b]);
      const __m256 dot = _mm256_cvtepi32_ps(_mm256_sub_epi32(dots[t], offset));
      const __m256 dx = _mm256_set1_ps(x.scales[t * x.scale_stride + b]);
      scaled[t] = kPart == 0 ? _mm256_mul_ps(dot, dx) : _mm256_fmadd_ps(dot, dx, scaled[t]);
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_half(const Tile& tile, size_t half, const Activations& x,
                                              size_t b, __m256 (&sums)[kTokens]) {
    __m256 scaled[kTokens];
    add_part<0>(tile, half, x, kParts * b, scaled);
    if constexpr (kParts > 1) add_part<1>(tile, half, x, kParts * b + 1, scaled);
    if constexpr (kParts > 2) {
      add_part<2>(tile, half, x, kParts * b + 2, scaled);
      add_part<3>(tile, half, x, kParts * b + 3, scaled);
    }
    const __m256 d = tile_scales(tile, half);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) sums[t] = _mm256_fmadd_ps(scaled[t], d, sums[t]);
  }
};

// NVFP4: 16 columns, then their scale.
struct SmallBlocks {
  using Tile = TileNVFP4;
  static constexpr size_t kColumns = Tile::kColumns;

  template <size_t kSide, size_t kTokens>
  [[gnu::always_inline]] static void add_side(const Tile::Part& part, size_t half,
                                              const Activations& x, size_t b,
                                              __m256 (&sums)[kTokens]) {
    const __m256i table = broadcast16(kFp4Signed.bytes);
    __m256i pairs[kTokens];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m256i values =
          _mm256_shuffle_epi8(table, nibbles<kSide>(load(part.nibbles[j], half)));
      const __m256i magnitudes = _mm256_abs_epi8(values);
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const int8_t* q = x.q + t * x.q_stride + 32 * b + 16 * kSide + 4 * j;
        const __m256i products =
            _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(broadcast4(q), values));
        pairs[t] = j == 0 ? products : _mm256_add_epi16(pairs[t], products);
      }
    }
    const __m128i bytes = _mm_cvtepu8_epi16(load64(part.scales[kSide] + 8 * half));
    const __m256 small = _mm256_cvtph_ps(_mm_slli_epi16(bytes, 7));
    const __m256 d = _mm256_mul_ps(small, _mm256_set1_ps(128.0f));
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i dot = _mm256_madd_epi16(pairs[t], _mm256_set1_epi16(1));
      const __m256 dx = _mm256_set1_ps(x.scales[t * x.scale_stride + b]);
      sums[t] = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(dot), dx), d, sums[t]);
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_half(const Tile& tile, size_t half, const Activations& x,
                                              size_t b, __m256 (&sums)[kTokens]) {
#pragma GCC unroll 2
    for (size_t p = 0; p < 2; ++p) {
      add_side<0>(tile.parts[p], half, x, 2 * b + p, sums);
      add_side<1>(tile.parts[p], half, x, 2 * b + p, sums);
    }
  }
};

template <class Kernel>
void run(const MatVecArgs& args) {
  run_rows<TileFrame<Kernel>, 4, 2, 1>(args);
}

}  // namespace

void matvec_mxfp4(const MatVecArgs& args) { run<LowBit<TileMXFP4>>(args); }
void matvec_nvfp4(const MatVecArgs& args) { run<SmallBlocks>(args); }
void matvec_q1_0(const MatVecArgs& args) { run<LowBit<TileQ1_0>>(args); }
void matvec_q2_0(const MatVecArgs& args) { run<LowBit<TileQ2_0>>(args); }

}  // namespace godwit::cpu::avx2
