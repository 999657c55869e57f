// Computes: what matvec_grid_generic.cpp says.
// Shapes and types: weights in tiles of grid_tiles.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens; the
//   codebooks (1-8 KB) stay in the first-level cache. Floor = bytes / read bandwidth, but the
//   look-ups need longer; measured: docs/BENCHMARKS.md.
// Work split: codes, signs and scales of eight rows are made ready at once, then 32 weights of one
//   row are put together and serve up to 8 tokens; lanes are summed once per 256 columns.
// Arithmetic: exact. vpmaddubsw sums fit int16: two of 62 * 127; times a scale of up to 31, 128 of
//   these fit int32.
// Reference: matvec_grid_generic.cpp.
// Tried and lost: gathers, 0.3-0.75 of the speed (docs/NEGATIVE_RESULTS.md).
#include <cstddef>
#include <cstdint>

#include "backend/cpu/grid_tables.h"
#include "backend/cpu/grid_tiles.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/matvec_kernels.h"

namespace godwit::cpu::avx2 {
namespace {

// What a group of eight rows needs beside the codebook, in a form that one row reads at once.
struct alignas(32) Group {
  uint32_t signs[8];        // [row] four bytes: signs of the weights of code j, or their deltas
  uint32_t scales[8];       // [row] 2 s + 1 as two int16, for the first and the second 16 columns
  uint16_t codes[2][8][4];  // [even, odd][row][j], where they have more than 8 bits
};

// 32 weights of one row: w = magnitude, negative where the byte of `sign` is; no such byte is 0.
struct Weights {
  __m256i magnitude;
  __m256i sign;
};

[[gnu::always_inline]] inline __m256i load256(const void* bytes) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
}

[[gnu::always_inline]] inline void store256(void* bytes, __m256i value) {
  _mm256_store_si256(static_cast<__m256i*>(bytes), value);
}

// The half of a plane or of nibbles that belongs to eight rows, in every dword.
[[gnu::always_inline]] inline __m256i broadcast_half(const uint8_t (&plane)[8], size_t half) {
  int32_t dword = 0;
  __builtin_memcpy(&dword, plane + 4 * half, 4);
  return _mm256_set1_epi32(dword);
}

// Byte j of the dword that all lanes hold, in the bytes of the weights of code j.
[[gnu::always_inline]] inline __m256i spread_bytes(__m256i dwords) {
  const __m256i order =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  return _mm256_shuffle_epi8(dwords, order);
}

// Bit i of the dword that all lanes hold, as byte i: -1 or 0.
[[gnu::always_inline]] inline __m256i spread_bits(__m256i dwords) {
  const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread_bytes(dwords), bits), bits);
}

// The same for a plane: byte 4 r + j for code j of row r of the half.
[[gnu::always_inline]] inline __m256i spread_plane(const uint8_t (&plane)[8], size_t half) {
  return spread_bits(broadcast_half(plane, half));
}

// Each byte is seven signs; the eighth makes their number even.
[[gnu::always_inline]] inline __m256i add_parity(__m256i signs7) {
  const __m256i odd = _mm256_setr_epi32(
      static_cast<int>(0x00808000u), static_cast<int>(0x80000080u), static_cast<int>(0x80000080u),
      static_cast<int>(0x00808000u), static_cast<int>(0x00808000u), static_cast<int>(0x80000080u),
      static_cast<int>(0x80000080u), static_cast<int>(0x00808000u));
  const __m256i folded = _mm256_and_si256(_mm256_xor_si256(signs7, _mm256_srli_epi16(signs7, 4)),
                                          _mm256_set1_epi8(15));
  return _mm256_or_si256(signs7, _mm256_shuffle_epi8(odd, folded));
}

// The nibbles of eight rows, one in each dword.
[[gnu::always_inline]] inline __m256i load_nibbles(const uint8_t (&nibbles)[8], size_t half) {
  const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  return _mm256_and_si256(_mm256_srlv_epi32(broadcast_half(nibbles, half), shifts),
                          _mm256_set1_epi32(15));
}

// 2 s + 1 for both halves of a group, from s0 and s1.
[[gnu::always_inline]] inline __m256i pair_scales(__m256i s0, __m256i s1) {
  const __m256i pairs = _mm256_or_si256(s0, _mm256_slli_epi32(s1, 16));
  return _mm256_or_si256(_mm256_add_epi32(pairs, pairs), _mm256_set1_epi32(0x10001));
}

// Codes of eight rows from their low bytes and, in bits 0 and up of a byte, the bits above.
[[gnu::always_inline]] inline void store_codes(const uint8_t (&low)[64], __m256i high, size_t half,
                                               uint16_t (&codes)[8][4]) {
  const __m128i low0 = load128(low + 32 * half);
  const __m128i low1 = load128(low + 32 * half + 16);
  const __m128i high0 = _mm256_castsi256_si128(high);
  const __m128i high1 = _mm256_extracti128_si256(high, 1);
  auto* out = reinterpret_cast<__m128i*>(codes);
  _mm_store_si128(out, _mm_unpacklo_epi8(low0, high0));
  _mm_store_si128(out + 1, _mm_unpackhi_epi8(low0, high0));
  _mm_store_si128(out + 2, _mm_unpacklo_epi8(low1, high1));
  _mm_store_si128(out + 3, _mm_unpackhi_epi8(low1, high1));
}

template <size_t kPlanes>
[[gnu::always_inline]] inline void store_codes(const uint8_t (&low)[64],
                                               const uint8_t (&planes)[kPlanes][8], size_t half,
                                               uint16_t (&codes)[8][4]) {
  __m256i high = _mm256_setzero_si256();
#pragma GCC unroll 3
  for (size_t k = 0; k < kPlanes; ++k) {
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << k));
    high = _mm256_or_si256(high, _mm256_and_si256(spread_plane(planes[k], half), bit));
  }
  store_codes(low, high, half, codes);
}

// The words of IQ2_XXS and IQ3_XXS: signs and scales.
[[gnu::always_inline]] inline void store_words(const uint8_t (&words)[64], size_t half,
                                               Group& out) {
  const __m256i w = load(words, half);
  const auto field = [&](int shift, uint32_t mask) __attribute__((always_inline)) {
    return _mm256_and_si256(_mm256_slli_epi32(w, shift), _mm256_set1_epi32(static_cast<int>(mask)));
  };
  const __m256i signs7 = _mm256_or_si256(_mm256_or_si256(field(0, 0x7f), field(1, 0x7f00)),
                                         _mm256_or_si256(field(2, 0x7f0000), field(3, 0x7f000000)));
  const __m256i s = _mm256_srli_epi32(w, 28);
  store256(out.signs, add_parity(signs7));
  store256(out.scales, pair_scales(s, s));
}

[[gnu::always_inline]] inline __m256i broadcast_dword(const uint32_t& dword) {
  return _mm256_set1_epi32(static_cast<int32_t>(dword));
}

// Four entries of 8 weights, or four pairs of 4. Words are joined as integers: gathers need two to
// three times as long, and inserting each word into a vector takes longer too.
template <class Code, size_t kEntries>
[[gnu::always_inline]] inline __m256i look_up(const GridTable<uint64_t, kEntries>& grid,
                                              const Code* codes) {
  const auto entry = [&](size_t j) __attribute__((always_inline)) {
    return static_cast<int64_t>(grid.entries[codes[j]]);
  };
  return _mm256_set_epi64x(entry(3), entry(2), entry(1), entry(0));
}

template <class Code, size_t kEntries>
[[gnu::always_inline]] inline __m256i look_up(const GridTable<uint32_t, kEntries>& grid,
                                              const Code* even, const Code* odd) {
  const auto pair = [&](size_t j) __attribute__((always_inline)) {
    return static_cast<int64_t>(grid.entries[even[j]] | uint64_t{grid.entries[odd[j]]} << 32);
  };
  return _mm256_set_epi64x(pair(3), pair(2), pair(1), pair(0));
}

[[gnu::always_inline]] inline Weights with_signs(__m256i magnitude, const uint32_t& signs) {
  const __m256i negative = spread_bits(broadcast_dword(signs));
  return {magnitude, _mm256_or_si256(negative, _mm256_set1_epi8(1))};
}

// A policy per type. prepare() makes a Group ready for the rows of one half; weights() puts the
// weights of one of these rows together.

struct IQ2_XXS {
  using Tile = TileIQ2_XXS;
  static constexpr size_t kScaleColumns = 32;
  [[gnu::always_inline]] static void prepare(const Tile::Group& in, size_t half, Group& out) {
    store_words(in.words, half, out);
  }
  [[gnu::always_inline]] static Weights weights(const Tile::Group& in, const Group& ready,
                                                size_t half, size_t row) {
    return with_signs(look_up(kGridIQ2_XXS, in.codes + 32 * half + 4 * row), ready.signs[row]);
  }
};

struct IQ3_XXS {
  using Tile = TileIQ3_XXS;
  static constexpr size_t kScaleColumns = 32;
  [[gnu::always_inline]] static void prepare(const Tile::Group& in, size_t half, Group& out) {
    store_words(in.words, half, out);
  }
  [[gnu::always_inline]] static Weights weights(const Tile::Group& in, const Group& ready,
                                                size_t half, size_t row) {
    const size_t at = 32 * half + 4 * row;
    return with_signs(look_up(kGridIQ3_XXS, in.even + at, in.odd + at), ready.signs[row]);
  }
};

struct IQ2_XS {
  using Tile = TileIQ2_XS;
  static constexpr size_t kScaleColumns = 16;
  [[gnu::always_inline]] static void prepare(const Tile::Group& in, size_t half, Group& out) {
    const __m256i high = load(in.high, half);
    const __m256i signs7 = _mm256_and_si256(_mm256_srli_epi16(high, 1), _mm256_set1_epi8(0x7f));
    store256(out.signs, add_parity(signs7));
    store_codes(in.codes, _mm256_and_si256(high, _mm256_set1_epi8(1)), half, out.codes[0]);
    store256(out.scales,
             pair_scales(load_nibbles(in.scales[0], half), load_nibbles(in.scales[1], half)));
  }
  [[gnu::always_inline]] static Weights weights(const Tile::Group&, const Group& ready, size_t,
                                                size_t row) {
    return with_signs(look_up(kGridIQ2_XS, ready.codes[0][row]), ready.signs[row]);
  }
};

struct IQ2_S {
  using Tile = TileIQ2_S;
  static constexpr size_t kScaleColumns = 16;
  [[gnu::always_inline]] static void prepare(const Tile::Group& in, size_t half, Group& out) {
    store256(out.signs, load(in.signs, half));
    store_codes(in.codes, in.planes, half, out.codes[0]);
    store256(out.scales,
             pair_scales(load_nibbles(in.scales[0], half), load_nibbles(in.scales[1], half)));
  }
  [[gnu::always_inline]] static Weights weights(const Tile::Group&, const Group& ready, size_t,
                                                size_t row) {
    return with_signs(look_up(kGridIQ2_S, ready.codes[0][row]), ready.signs[row]);
  }
};

struct IQ3_S {
  using Tile = TileIQ3_S;
  static constexpr size_t kScaleColumns = 32;
  [[gnu::always_inline]] static void prepare(const Tile::Group& in, size_t half, Group& out) {
    const __m256i one = _mm256_set1_epi8(1);
    store256(out.signs, load(in.signs, half));
    store_codes(in.even, _mm256_and_si256(spread_plane(in.even_plane, half), one), half,
                out.codes[0]);
    store_codes(in.odd, _mm256_and_si256(spread_plane(in.odd_plane, half), one), half,
                out.codes[1]);
    const __m256i s = load_nibbles(in.scales, half);
    store256(out.scales, pair_scales(s, s));
  }
  [[gnu::always_inline]] static Weights weights(const Tile::Group&, const Group& ready, size_t,
                                                size_t row) {
    return with_signs(look_up(kGridIQ3_S, ready.codes[0][row], ready.codes[1][row]),
                      ready.signs[row]);
  }
};

// The sums over the lanes of eight vectors, in order.
[[gnu::always_inline]] inline __m256i sum_lanes(const __m256i (&v)[8]) {
  const __m256i low =
      _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
  const __m256i high =
      _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                          _mm256_permute2x128_si256(low, high, 0x31));
}

template <class Type>
struct Codebook {
  using Tile = typename Type::Tile;
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  // dots[t][row] of one row, spread over lanes: the sum of scale * dot over its groups.
  template <size_t kTokens>
  [[gnu::always_inline]] static void multiply_row(const Tile& tile,
                                                  const Group (&ready)[kGridGroups], size_t half,
                                                  size_t row, const int8_t* q, size_t q_stride,
                                                  __m256i (&dots)[kTokens][8]) {
    __m256i isums[kTokens];
    for (__m256i& isum : isums) isum = _mm256_setzero_si256();
#pragma GCC unroll 1
    for (size_t g = 0; g < kGridGroups; ++g) {
      const Weights w = Type::weights(tile.groups[g], ready[g], half, row);
      __m256i scales = broadcast_dword(ready[g].scales[row]);
      if constexpr (Type::kScaleColumns == 16) {
        // The first int16 in the lower half, the second in the upper one.
        const __m256i order = _mm256_setr_epi64x(0x0100010001000100, 0x0100010001000100,
                                                 0x0302030203020302, 0x0302030203020302);
        scales = _mm256_shuffle_epi8(scales, order);
      }
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i x = _mm256_sign_epi8(load256(q + t * q_stride + 32 * g), w.sign);
        const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, x);
        isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(pairs, scales));
      }
    }
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) dots[t][row] = isums[t];
  }

  // sums[t] of eight rows, plus one block of 256 columns.
  template <size_t kTokens, bool kPrefetch>
  [[gnu::always_inline]] static void add_half(const Tile& tile, size_t half, const Activations& x,
                                              size_t b, __m256 (&sums)[kTokens]) {
    Group ready[kGridGroups];
#pragma GCC unroll 1
    for (size_t g = 0; g < kGridGroups; ++g) Type::prepare(tile.groups[g], half, ready[g]);
    __m256i dots[kTokens][8];
#pragma GCC unroll 1
    for (size_t row = 0; row < 8; ++row) {
      if constexpr (kPrefetch) prefetch_share(tile, 8 * half + row);
      multiply_row(tile, ready, half, row, x.q + 256 * b, x.q_stride, dots);
    }
    const __m256 d = _mm256_mul_ps(_mm256_set1_ps(Tile::kUnit), load_halves(tile.d, half));
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x.scales[t * x.scale_stride + b]));
      sums[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum_lanes(dots[t])), scale, sums[t]);
    }
  }

  // One of 16 shares of a tile's lines.
  [[gnu::always_inline]] static void prefetch_share(const Tile& tile, size_t share) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&tile);
    for (size_t line = 64 * share; line < sizeof(Tile); line += 64 * kTileRows) {
      prefetch_weights<64>(bytes + line);
    }
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    __m256 sums[2][kTokens];
    for (auto& half : sums) {
      for (__m256& sum : half) sum = _mm256_setzero_ps();
    }
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      add_half<kTokens, kPrefetch>(*tile, 0, job.x, b, sums[0]);
      add_half<kTokens, kPrefetch>(*tile, 1, job.x, b, sums[1]);
    }
    store_sums(sums[0], job, 0);
    store_sums(sums[1], job, 1);
  }
};

template <class Type>
[[gnu::always_inline]] inline void run(const MatVecArgs& args) {
  run_rows<Codebook<Type>, 8, 4, 2, 1>(args);
}

}  // namespace

void matvec_iq2_xxs(const MatVecArgs& args) { run<IQ2_XXS>(args); }
void matvec_iq2_xs(const MatVecArgs& args) { run<IQ2_XS>(args); }
void matvec_iq2_s(const MatVecArgs& args) { run<IQ2_S>(args); }
void matvec_iq3_xxs(const MatVecArgs& args) { run<IQ3_XXS>(args); }
void matvec_iq3_s(const MatVecArgs& args) { run<IQ3_S>(args); }

}  // namespace godwit::cpu::avx2
