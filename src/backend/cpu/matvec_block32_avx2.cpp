// Computes: what matvec_block32_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 32]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 32 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row, a tile is two halves; 8 rows by up to 4 tokens at a time.
// Arithmetic: exact. Codes of 4 and 5 bits stay unsigned: eight products of 15 * 127 * 2, or four
//   of 31 * 127 * 2, fit int16. Q8_0 takes |code| and moves its sign to x: 128 * 127 * 2 fits.
// Reference: matvec_block32_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx2 {
namespace {

[[gnu::always_inline]] inline __m256i add_pairs(__m256i pairs) {
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// Unsigned codes of 4 or 5 bits for one half of a tile; their dot less offset * sum(x).
template <class Tile, int kOffset>
struct UnsignedCodes {
  using TileType = Tile;
  static constexpr bool kFiveBits = requires(const Tile& tile) { tile.high; };
  __m256i codes[8];

  [[gnu::always_inline]] UnsignedCodes(const Tile& tile, size_t half) {
    const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m256i both = load(tile.nibbles[j], half);
      codes[j] = _mm256_and_si256(both, mask);
      codes[4 + j] = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
    }
    if constexpr (kFiveBits) merge_high_bits(load(tile.high, half), codes);
  }

  [[gnu::always_inline]] __m256i dot(const int8_t* q, int32_t sum) const {
    __m256i result;
    if constexpr (kFiveBits) {
      result = _mm256_add_epi32(add_pairs(pair_dots<0, 4>(codes, q)),
                                add_pairs(pair_dots<4, 4>(codes, q)));
    } else {
      result = add_pairs(pair_dots<0, 8>(codes, q));
    }
    if constexpr (kOffset == 0) return result;
    return _mm256_sub_epi32(result, _mm256_set1_epi32(kOffset * sum));
  }
};

struct SignedCodes {
  using TileType = TileQ8_0;
  __m256i codes[8];
  __m256i magnitudes[8];

  [[gnu::always_inline]] SignedCodes(const TileQ8_0& tile, size_t half) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      codes[j] = _mm256_xor_si256(load(tile.codes[j], half), _mm256_set1_epi8(-128));
      magnitudes[j] = _mm256_abs_epi8(codes[j]);
    }
  }

  [[gnu::always_inline]] __m256i dot(const int8_t* q, int32_t /*sum*/) const {
    __m256i result = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      const __m256i x = _mm256_sign_epi8(broadcast4(q + 4 * j), codes[j]);
      result = _mm256_add_epi32(result, add_pairs(_mm256_maddubs_epi16(magnitudes[j], x)));
    }
    return result;
  }
};

template <class Codes>
struct Block32 {
  using Tile = typename Codes::TileType;
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 32 * sizeof(Tile); }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_half(const Tile& tile, size_t half, const Activations& x,
                                              size_t b, __m256 (&sums)[kTokens]) {
    const Codes codes(tile, half);
    const __m256 d = load_halves(tile.scales, half);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int32_t sum = x.sums[t * x.sum_stride + b];
      const float dx = x.scales[t * x.scale_stride + b];
      const __m256 dot = _mm256_cvtepi32_ps(codes.dot(x.q + t * x.q_stride + 32 * b, sum));
      sums[t] = _mm256_fmadd_ps(dot, _mm256_mul_ps(d, _mm256_set1_ps(dx)), sums[t]);
      if constexpr (requires { tile.mins; }) {
        const __m256 scaled_sum = _mm256_set1_ps(dx * static_cast<float>(sum));
        sums[t] = _mm256_fmadd_ps(load_halves(tile.mins, half), scaled_sum, sums[t]);
      }
    }
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    __m256 sums[2][kTokens];
    for (auto& half : sums) {
      for (__m256& sum : half) sum = _mm256_setzero_ps();
    }
    for (size_t b = 0; b < job.cols / 32; ++b, ++tile) {
      if constexpr (kPrefetch) prefetch_weights<sizeof(Tile)>(tile);
      add_half(*tile, 0, job.x, b, sums[0]);
      add_half(*tile, 1, job.x, b, sums[1]);
    }
    store_sums(sums[0], job, 0);
    store_sums(sums[1], job, 1);
  }
};

using Q4_0 = Block32<UnsignedCodes<TileQ4_0, 8>>;
using Q4_1 = Block32<UnsignedCodes<TileQ4_1, 0>>;
using Q5_0 = Block32<UnsignedCodes<TileQ5_0, 16>>;
using Q5_1 = Block32<UnsignedCodes<TileQ5_1, 0>>;
using Q8_0 = Block32<SignedCodes>;

}  // namespace

void matvec_q4_0(const MatVecArgs& args) { run_rows<Q4_0, 4, 2, 1>(args); }
void matvec_q4_1(const MatVecArgs& args) { run_rows<Q4_1, 4, 2, 1>(args); }
void matvec_q5_0(const MatVecArgs& args) { run_rows<Q5_0, 4, 2, 1>(args); }
void matvec_q5_1(const MatVecArgs& args) { run_rows<Q5_1, 4, 2, 1>(args); }
void matvec_q8_0(const MatVecArgs& args) { run_rows<Q8_0, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx2
