// Computes: what matvec_block32_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 32]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 32 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: see multiply_by_halves(); up to 4 tokens at a time.
// Arithmetic: exact. Codes of 4 and 5 bits stay unsigned: eight products of 15 * 127 * 2, or four
//   of 31 * 127 * 2, fit int16. Q8_0 and IQ4_NL take |code| and move its sign to x: 128 * 127 * 2
//   fits.
// Reference: matvec_block32_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx2.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/nibble_tables.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx2 {
namespace {

// The dots of one half of a tile with kTokens tokens, four columns after four columns, each vector
// of codes made just before its use: sixteen registers hold no more. q points at the block's
// columns of the first token.
template <size_t kTokens>
struct Dots {
  __m256i dots[kTokens];

  [[gnu::always_inline]] Dots() {
    for (__m256i& dot : dots) dot = _mm256_setzero_si256();
  }

  [[gnu::always_inline]] static __m256i add_pairs(__m256i pairs) {
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }

  // Adds sums of pairs in int16 to the dots.
  [[gnu::always_inline]] void add(const __m256i (&pairs)[kTokens]) {
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      dots[t] = _mm256_add_epi32(dots[t], add_pairs(pairs[t]));
    }
  }
};

// Codes of 4 or 5 bits: the low half of each nibble byte is columns 0..15, the high half 16..31.
template <class Tile, size_t kTokens>
[[gnu::always_inline]] inline void add_nibbles(const Tile& tile, size_t half, const int8_t* q,
                                               size_t q_stride, Dots<kTokens>& dots) {
  constexpr bool kFiveBits = requires { tile.high; };
#pragma GCC unroll 2
  for (size_t upper = 0; upper < 2; ++upper) {
    __m256i pairs[kTokens];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m256i both = load(tile.nibbles[j], half);
      __m256i codes = upper == 0 ? both : _mm256_srli_epi16(both, 4);
      codes = _mm256_and_si256(codes, _mm256_set1_epi8(15));
      if constexpr (kFiveBits) {
        codes = merge_bit4(codes, high_bit(load(tile.high, half), 4 * upper + j));
      }
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i x = broadcast4(q + t * q_stride + 16 * upper + 4 * j);
        const __m256i products = _mm256_maddubs_epi16(codes, x);
        pairs[t] = j == 0 ? products : _mm256_add_epi16(pairs[t], products);
      }
    }
    dots.add(pairs);
  }
}

// Columns 4 j.. as signed bytes, -127..127 or, for Q8_0, from -128.
[[gnu::always_inline]] inline __m256i signed_codes(const TileQ8_0& tile, size_t half, size_t j) {
  return _mm256_xor_si256(load(tile.codes[j], half), _mm256_set1_epi8(-128));
}
[[gnu::always_inline]] inline __m256i signed_codes(const TileIQ4_NL& tile, size_t half, size_t j) {
  const __m256i both = load(tile.nibbles[j % 4], half);
  const __m256i codes = j < 4 ? nibbles<0>(both) : nibbles<1>(both);
  return _mm256_shuffle_epi8(broadcast16(kIq4Signed.bytes), codes);
}

// Codes of up to 8 bits with a sign: |code| times x with the code's sign.
template <class Tile, size_t kTokens>
[[gnu::always_inline]] inline void add_signed(const Tile& tile, size_t half, const int8_t* q,
                                              size_t q_stride, Dots<kTokens>& dots) {
#pragma GCC unroll 8
  for (size_t j = 0; j < 8; ++j) {
    const __m256i codes = signed_codes(tile, half, j);
    const __m256i magnitudes = _mm256_abs_epi8(codes);
    __m256i pairs[kTokens];
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i x = _mm256_sign_epi8(broadcast4(q + t * q_stride + 4 * j), codes);
      pairs[t] = _mm256_maddubs_epi16(magnitudes, x);
    }
    dots.add(pairs);
  }
}

// What to take off a dot of unsigned codes, in sums of x. Signed codes need nothing.
template <class Tile>
constexpr int kOffset = 0;
template <>
constexpr int kOffset<TileQ4_0> = 8;
template <>
constexpr int kOffset<TileQ5_0> = 16;

template <class Tile_>
struct Block32 {
  using Tile = Tile_;
  static constexpr size_t kColumns = 32;

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_half(const Tile& tile, size_t half, const Activations& x,
                                              size_t b, __m256 (&sums)[kTokens]) {
    Dots<kTokens> dots;
    if constexpr (requires { signed_codes(tile, half, 0); }) {
      add_signed(tile, half, x.q + 32 * b, x.q_stride, dots);
    } else {
      add_nibbles(tile, half, x.q + 32 * b, x.q_stride, dots);
    }
    const __m256 d = load_halves(tile.scales, half);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const int32_t sum = x.sums[t * x.sum_stride + b];
      const float dx = x.scales[t * x.scale_stride + b];
      __m256i dot = dots.dots[t];
      if constexpr (kOffset<Tile> != 0) {
        dot = _mm256_sub_epi32(dot, _mm256_set1_epi32(kOffset<Tile> * sum));
      }
      const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(dx));
      sums[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sums[t]);
      if constexpr (requires { tile.mins; }) {
        const __m256 scaled_sum = _mm256_set1_ps(dx * static_cast<float>(sum));
        sums[t] = _mm256_fmadd_ps(load_halves(tile.mins, half), scaled_sum, sums[t]);
      }
    }
  }
};

template <class Tile>
void run(const MatVecArgs& args) {
  run_rows<TileFrame<Block32<Tile>>, 4, 2, 1>(args);
}

}  // namespace

void matvec_q4_0(const MatVecArgs& args) { run<TileQ4_0>(args); }
void matvec_q4_1(const MatVecArgs& args) { run<TileQ4_1>(args); }
void matvec_q5_0(const MatVecArgs& args) { run<TileQ5_0>(args); }
void matvec_q5_1(const MatVecArgs& args) { run<TileQ5_1>(args); }
void matvec_q8_0(const MatVecArgs& args) { run<TileQ8_0>(args); }
void matvec_iq4_nl(const MatVecArgs& args) { run<TileIQ4_NL>(args); }

}  // namespace godwit::cpu::avx2
