// Computes: what matvec_block32_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 32]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 32 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row; 16 rows by up to 8 tokens at a time.
// Arithmetic: exact. Codes stay unsigned; the offset is taken off by starting at
//   -offset * sum(x), and u8 x s8 dots accumulate in int32 without saturation.
// Reference: matvec_block32_generic.cpp.
// Tried and rejected: file layout, 82-95 % of the read bandwidth against 98 %
// (docs/NEGATIVE_RESULTS.md).

#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx512.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/nibble_tables.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx512vnni {
namespace {

template <class Tile>
[[gnu::always_inline]] inline void unpack(const Tile& tile, __m512i (&codes)[8]) {
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i both = load(tile.nibbles[j]);
    codes[j] = nibbles<0>(both);
    codes[4 + j] = nibbles<1>(both);
  }
  if constexpr (requires { tile.high; }) merge_high_bits(load(tile.high), codes);
}

template <>
[[gnu::always_inline]] inline void unpack(const TileQ8_0& tile, __m512i (&codes)[8]) {
#pragma GCC unroll 8
  for (size_t j = 0; j < 8; ++j) codes[j] = load(tile.codes[j]);
}

template <>
[[gnu::always_inline]] inline void unpack(const TileIQ4_NL& tile, __m512i (&codes)[8]) {
  const __m512i table = broadcast16(kIq4Raised.bytes);
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i both = load(tile.nibbles[j]);
    codes[j] = _mm512_shuffle_epi8(table, nibbles<0>(both));
    codes[4 + j] = _mm512_shuffle_epi8(table, nibbles<1>(both));
  }
}

template <class Tile>
constexpr int kOffset = 0;
template <>
constexpr int kOffset<TileQ4_0> = 8;
template <>
constexpr int kOffset<TileQ5_0> = 16;
template <>
constexpr int kOffset<TileQ8_0> = 128;
template <>
constexpr int kOffset<TileIQ4_NL> = kIq4Offset;

template <class Tile_>
struct Block32 {
  using Tile = Tile_;
  static constexpr size_t kColumns = 32;

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_tile(const Tile& tile, const Activations& x, size_t b,
                                              __m512 (&sums)[kTokens]) {
    __m512i codes[8];
    unpack(tile, codes);
    const __m512 d = load_halves(tile.scales);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int32_t sum = x.sums[t * x.sum_stride + b];
      const float dx = x.scales[t * x.scale_stride + b];
      const __m512i integer = dot32(codes, x.q + t * x.q_stride + 32 * b, -kOffset<Tile> * sum);
      const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(dx));
      sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(integer), scale, sums[t]);
      if constexpr (requires { tile.mins; }) {
        const __m512 scaled_sum = _mm512_set1_ps(dx * static_cast<float>(sum));
        sums[t] = _mm512_fmadd_ps(load_halves(tile.mins), scaled_sum, sums[t]);
      }
    }
  }
};

template <class Tile>
void run(const MatVecArgs& args) {
  run_rows<TileFrame<Block32<Tile>>, 8, 4, 2, 1>(args);
}

}  // namespace

void matvec_q4_0(const MatVecArgs& args) { run<TileQ4_0>(args); }
void matvec_q4_1(const MatVecArgs& args) { run<TileQ4_1>(args); }
void matvec_q5_0(const MatVecArgs& args) { run<TileQ5_0>(args); }
void matvec_q5_1(const MatVecArgs& args) { run<TileQ5_1>(args); }
void matvec_q8_0(const MatVecArgs& args) { run<TileQ8_0>(args); }
void matvec_iq4_nl(const MatVecArgs& args) { run<TileIQ4_NL>(args); }

}  // namespace godwit::cpu::avx512vnni
