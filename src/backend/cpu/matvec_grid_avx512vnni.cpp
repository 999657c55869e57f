// Computes: what matvec_grid_generic.cpp says.
// Shapes and types: weights in tiles of grid_tiles.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row, its four bytes belong to the four codes of a group; vector f
//   of eight holds weight f of each code. x is put in that order first, once per call.
// Arithmetic: exact. Weights are kept as 64 + w in 1..127; a dot starts at -64 times the sum of x.
// Reference: matvec_grid_generic.cpp.
// Tried and lost: chains of merge-masked vpermb instead of vpermi2b and blends, 0.2-0.8 of the
//   speed (docs/NEGATIVE_RESULTS.md).
#include <cstddef>
#include <cstdint>

#include "backend/cpu/grid_tables.h"
#include "backend/cpu/grid_tiles.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/matvec_kernels.h"

namespace godwit::cpu::avx512vnni {
namespace {

// 16 x 32 weights as weights[f], byte 4 r + j: 64 + weight 8 j + f of row r; or as join_halves()
// says. A scale for all columns of a row, or for the first 16 and for the last.
struct Unpacked {
  __m512i weights[8];
  __m512i scales;
  __m512i last_scales;  // only where they differ
};

// Codes of 8 bits and more: the low bytes, and where each bit from bit 7 up is set.
template <size_t kEntries>
struct Codes {
  static constexpr size_t kMasks = static_cast<size_t>(__builtin_ctzll(kEntries)) - 7;
  __m512i low;
  __mmask64 masks[kMasks];
};

[[gnu::always_inline]] inline __mmask64 load_mask(const uint8_t (&plane)[8]) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, plane, 8);
  return bits;
}

// high: where bit 8, 9 and so on are set.
template <size_t kEntries, class... Masks>
[[gnu::always_inline]] inline Codes<kEntries> select(__m512i low, Masks... high) {
  static_assert(Codes<kEntries>::kMasks == 1 + sizeof...(high));
  return {low, {_mm512_movepi8_mask(low), high...}};
}

// table[code] in every byte, for the 128 << kBits entries from `table` on.
template <size_t kBits, size_t kEntries>
[[gnu::always_inline]] inline __m512i look_up_part(const uint8_t* table,
                                                   const Codes<kEntries>& codes) {
  if constexpr (kBits == 0) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), codes.low,
                                    _mm512_load_si512(table + 64));
  } else {
    const __m512i lower = look_up_part<kBits - 1>(table, codes);
    const __m512i upper = look_up_part<kBits - 1>(table + (size_t{64} << kBits), codes);
    return _mm512_mask_blend_epi8(codes.masks[kBits - 1], lower, upper);
  }
}

template <size_t kEntries>
[[gnu::always_inline]] inline __m512i look_up(const uint8_t (&table)[kEntries],
                                              const Codes<kEntries>& codes) {
  return look_up_part<Codes<kEntries>::kMasks>(table, codes);
}

// The tables of a type.
template <size_t kEntries, size_t kValues>
struct Tables {
  const LevelTable<kEntries>& levels;
  const ValueTables<kValues>& values;

  [[gnu::always_inline]] __m512i low(const Codes<kEntries>& codes) const {
    return look_up(levels.low, codes);
  }
  [[gnu::always_inline]] __m512i high(const Codes<kEntries>& codes) const {
    return look_up(levels.high, codes);
  }
  // Table t at the indices.
  [[gnu::always_inline]] __m512i value(size_t t, __m512i index) const {
    return _mm512_permutexvar_epi8(index, _mm512_load_si512(values.values[t]));
  }
};

// How a byte codes the signs of eight weights: bit i, or seven from bit 0 or 1 up and the eighth so
// that their number is even.
enum class SignBits : uint8_t { kEight, kSeven, kSevenFromBit1 };

// A matrix for gf2p8affineqb that puts sign f of a byte at bit places[f].
[[nodiscard]] constexpr uint64_t sign_matrix(SignBits bits, const unsigned (&places)[8]) {
  uint64_t matrix = 0;
  for (unsigned f = 0; f < 8; ++f) {
    uint64_t sources = 1u << f;
    if (bits == SignBits::kSeven && f == 7) sources = 0x7f;
    if (bits == SignBits::kSevenFromBit1) sources = f == 7 ? 0xfe : 2u << f;
    matrix |= sources << (8 * (7 - places[f]));
  }
  return matrix;
}

// Where the tables of levels of two and of three bits expect the signs.
constexpr unsigned kPlaces2[8] = {4, 5, 0, 1, 6, 7, 2, 3};
constexpr unsigned kPlaces3[8] = {3, 0, 4, 1, 5, 2, 6, 7};

template <SignBits kBits, size_t kLevelBits>
[[gnu::always_inline]] inline __m512i place_signs(__m512i bytes) {
  constexpr uint64_t kMatrix = sign_matrix(kBits, kLevelBits == 2 ? kPlaces2 : kPlaces3);
  return _mm512_gf2p8affine_epi64_epi8(bytes, _mm512_set1_epi64(static_cast<int64_t>(kMatrix)), 0);
}

// Seven bits of each word in each byte.
[[gnu::always_inline]] inline __m512i split_words(__m512i words) {
  return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), words);
}

// mask ? a : b, bit by bit.
[[gnu::always_inline]] inline __m512i pick(__m512i mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xca);
}

// Weights from levels of two bits and signs at kPlaces2.
template <size_t kEntries>
[[gnu::always_inline]] inline void join_values(const Tables<kEntries, 4>& tables,
                                               const Codes<kEntries>& codes, __m512i signs,
                                               Unpacked& out) {
  const __m512i low = tables.low(codes);  // weights 0..3
  const __m512i high = tables.high(codes);
  const __m512i below = _mm512_set1_epi8(0x0f);
  const __m512i above = _mm512_set1_epi8(0x3c);
  const __m512i signs2 = _mm512_srli_epi16(signs, 2);
  const __m512i index[4] = {pick(below, low, signs), pick(above, _mm512_srli_epi16(low, 2), signs),
                            pick(below, high, signs2),
                            pick(above, _mm512_srli_epi16(high, 2), signs2)};
#pragma GCC unroll 8
  for (size_t f = 0; f < 8; ++f) {
    out.weights[f] = tables.value(f % 4, index[f / 2]);
  }
}

// The same where scales belong to 16 columns: weights[f] and weights[4 + f], those of codes 0 and 1
// and of codes 2 and 3: bytes 0 and 1 of a dword are weight f of both codes, 2 and 3 weight 4 + f.
template <size_t kEntries>
[[gnu::always_inline]] inline void join_halves(const Tables<kEntries, 4>& tables,
                                               const Codes<kEntries>& codes, __m512i signs,
                                               Unpacked& out) {
  const __m512i below = _mm512_set1_epi8(0x0f);
  const __m512i above = _mm512_set1_epi8(0x3c);
  const __m512i low_words = _mm512_set1_epi32(0xffff);
  const __m512i low = tables.low(codes);
  const __m512i high = tables.high(codes);
  const __m512i levels[2] = {pick(low_words, low, _mm512_slli_epi32(high, 16)),
                             pick(low_words, _mm512_srli_epi32(low, 16), high)};
  // Signs of weights 4 + f lie two bits above those of weights f.
  const __m512i placed[2] = {
      pick(low_words, signs, _mm512_slli_epi32(signs, 14)),
      pick(low_words, _mm512_srli_epi32(signs, 16), _mm512_srli_epi32(signs, 2))};
#pragma GCC unroll 2
  for (size_t h = 0; h < 2; ++h) {
    const __m512i first = pick(below, levels[h], placed[h]);
    const __m512i last = pick(above, _mm512_srli_epi16(levels[h], 2), placed[h]);
    out.weights[4 * h] = tables.value(0, first);
    out.weights[4 * h + 1] = tables.value(1, first);
    out.weights[4 * h + 2] = tables.value(2, last);
    out.weights[4 * h + 3] = tables.value(3, last);
  }
}

// Weights from levels of three bits, of the even entries and the odd, and signs at kPlaces3.
template <size_t kEntries>
[[gnu::always_inline]] inline void join_values(const Tables<kEntries, 6>& tables,
                                               const Codes<kEntries>& even,
                                               const Codes<kEntries>& odd, __m512i signs,
                                               Unpacked& out) {
  const __m512i below = _mm512_set1_epi8(7);
  const __m512i signs3 = _mm512_srli_epi16(signs, 3);
  const __m512i signs5 = _mm512_srli_epi16(signs, 5);
  const __m512i w01 = tables.low(even);
  const __m512i w23 = tables.high(even);
  const __m512i w45 = tables.low(odd);
  const __m512i w67 = tables.high(odd);
  out.weights[0] = tables.value(0, pick(below, w01, signs));
  out.weights[1] = tables.value(1, pick(below, signs, w01));
  out.weights[2] = tables.value(2, pick(below, w23, signs));
  out.weights[3] = tables.value(3, pick(below, signs, w23));
  out.weights[4] = tables.value(4, pick(below, w45, signs));
  out.weights[5] = tables.value(5, pick(below, signs, w45));
  out.weights[6] = tables.value(0, pick(below, w67, signs3));
  out.weights[7] = tables.value(5, pick(below, signs5, w67));
}

// The nibbles of 16 rows, one in each dword.
[[gnu::always_inline]] inline __m512i load_nibbles(const uint8_t (&nibbles)[8]) {
  int64_t bits = 0;
  __builtin_memcpy(&bits, nibbles, 8);
  // Each byte of a qword takes eight bits from where the first and the second row of four begin.
  const __m512i shifts = _mm512_setr_epi64(
      0x0000000400000000, 0x0000000c00000008, 0x0000001400000010, 0x0000001c00000018,
      0x0000002400000020, 0x0000002c00000028, 0x0000003400000030, 0x0000003c00000038);
  const __m512i spread = _mm512_multishift_epi64_epi8(shifts, _mm512_set1_epi64(bits));
  return _mm512_and_si512(spread, _mm512_set1_epi32(15));
}

[[gnu::always_inline]] inline __m512i word_scales(__m512i words) {
  return _mm512_or_si512(_mm512_srli_epi32(words, 27), _mm512_set1_epi32(1));
}

// 2 s + 1 of every row.
[[gnu::always_inline]] inline __m512i odd_scales(__m512i s) {
  return _mm512_or_si512(_mm512_add_epi32(s, s), _mm512_set1_epi32(1));
}

// A policy per type: how a group becomes weights and scales.

struct IQ2_XXS {
  using Tile = TileIQ2_XXS;
  static constexpr size_t kScaleColumns = 32;
  static constexpr Tables<256, 4> kTables = {kLevelsIQ2_XXS, kValuesIQ2};
  [[gnu::always_inline]] static void unpack(const Tile::Group& in, Unpacked& out) {
    const __m512i words = load(in.words);
    const Codes<256> codes = select<256>(load(in.codes));
    const __m512i signs = place_signs<SignBits::kSeven, 2>(split_words(words));
    join_values(kTables, codes, signs, out);
    out.scales = word_scales(words);
  }
};

struct IQ3_XXS {
  using Tile = TileIQ3_XXS;
  static constexpr size_t kScaleColumns = 32;
  static constexpr Tables<256, 6> kTables = {kLevelsIQ3_XXS, kValuesIQ3_XXS};
  [[gnu::always_inline]] static void unpack(const Tile::Group& in, Unpacked& out) {
    const __m512i words = load(in.words);
    const __m512i signs = place_signs<SignBits::kSeven, 3>(split_words(words));
    join_values(kTables, select<256>(load(in.even)), select<256>(load(in.odd)), signs, out);
    out.scales = word_scales(words);
  }
};

struct IQ2_XS {
  using Tile = TileIQ2_XS;
  static constexpr size_t kScaleColumns = 16;
  static constexpr Tables<512, 4> kTables = {kLevelsIQ2_XS, kValuesIQ2};
  [[gnu::always_inline]] static void unpack(const Tile::Group& in, Unpacked& out) {
    const __m512i high = load(in.high);
    const Codes<512> codes =
        select<512>(load(in.codes), _mm512_movepi8_mask(_mm512_slli_epi16(high, 7)));
    const __m512i signs = place_signs<SignBits::kSevenFromBit1, 2>(high);
    join_halves(kTables, codes, signs, out);
    out.scales = odd_scales(load_nibbles(in.scales[0]));
    out.last_scales = odd_scales(load_nibbles(in.scales[1]));
  }
};

struct IQ2_S {
  using Tile = TileIQ2_S;
  static constexpr size_t kScaleColumns = 16;
  static constexpr Tables<1024, 4> kTables = {kLevelsIQ2_S, kValuesIQ2};
  [[gnu::always_inline]] static void unpack(const Tile::Group& in, Unpacked& out) {
    const Codes<1024> codes =
        select<1024>(load(in.codes), load_mask(in.planes[0]), load_mask(in.planes[1]));
    const __m512i signs = place_signs<SignBits::kEight, 2>(load(in.signs));
    join_halves(kTables, codes, signs, out);
    out.scales = odd_scales(load_nibbles(in.scales[0]));
    out.last_scales = odd_scales(load_nibbles(in.scales[1]));
  }
};

struct IQ3_S {
  using Tile = TileIQ3_S;
  static constexpr size_t kScaleColumns = 32;
  static constexpr Tables<512, 6> kTables = {kLevelsIQ3_S, kValuesIQ3_S};
  [[gnu::always_inline]] static void unpack(const Tile::Group& in, Unpacked& out) {
    const __m512i signs = place_signs<SignBits::kEight, 3>(load(in.signs));
    join_values(kTables, select<512>(load(in.even), load_mask(in.even_plane)),
                select<512>(load(in.odd), load_mask(in.odd_plane)), signs, out);
    out.scales = odd_scales(load_nibbles(in.scales));
  }
};

// x is that of Rearranged.
template <class Type>
struct Permutes {
  using Tile = typename Type::Tile;
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  // group: number of the group in the row.
  template <size_t kTokens>
  [[gnu::always_inline]] static void add_group(const Unpacked& w, const Activations& x,
                                               size_t group, __m512i (&sums)[kTokens]) {
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const int8_t* q = x.q + t * x.q_stride + 32 * group;
      if constexpr (Type::kScaleColumns == 32) {
        const __m512i dot = dot32(w.weights, q, x.sums[t * x.sum_stride + group]);
        sums[t] = _mm512_add_epi32(sums[t], _mm512_mullo_epi32(dot, w.scales));
      } else {
        const int32_t* words = x.sums + t * x.sum_stride + 2 * group;
        __m512i first = _mm512_set1_epi32(words[0]);
        __m512i last = _mm512_set1_epi32(words[1]);
#pragma GCC unroll 4
        for (size_t f = 0; f < 4; ++f) {
          first = _mm512_dpbusd_epi32(first, w.weights[f], broadcast4(q + 4 * f));
          last = _mm512_dpbusd_epi32(last, w.weights[4 + f], broadcast4(q + 16 + 4 * f));
        }
        const __m512i scaled = _mm512_add_epi32(_mm512_mullo_epi32(first, w.scales),
                                                _mm512_mullo_epi32(last, w.last_scales));
        sums[t] = _mm512_add_epi32(sums[t], scaled);
      }
    }
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    const Activations x = job.x;
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m512i isums[kTokens];
      for (__m512i& isum : isums) isum = _mm512_setzero_si512();
#pragma GCC unroll 1
      for (size_t g = 0; g < kGridGroups; ++g) {
        if constexpr (kPrefetch) prefetch_weights<sizeof(Tile) / 8>(&tile->groups[g]);
        Unpacked w;
        Type::unpack(tile->groups[g], w);
        add_group(w, x, kGridGroups * b + g, isums);
      }
      const __m512 d = _mm512_mul_ps(_mm512_set1_ps(Tile::kUnit), load_halves(tile->d));
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.scales[t * x.scale_stride + b]));
        sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isums[t]), scale, sums[t]);
      }
    }
    store_sums(sums, job, 0);
  }
};

// x in the order of the weights: of each 32 columns, byte 4 f + j is column 8 j + f, or, where
// scales cover 16, byte 4 f + 2 i + j of each 16 is column 8 j + 4 i + f. One word of sums for as
// many columns as a scale covers: -64 times their sum.
template <size_t kScaleColumns>
struct Rearranged {
  static constexpr size_t kBytes = size_t{128} << 10;

  alignas(64) int8_t q[kBytes];
  int32_t sums[kBytes / kScaleColumns];

  [[gnu::always_inline]] static int32_t low_half(int32_t word) {
    return static_cast<int16_t>(word & 0xffff);
  }

  // From the twelve words of a block, the eight or sixteen of this order.
  static void rearrange_sums(const int32_t* words, int32_t* out) {
    if constexpr (kScaleColumns == 32) {
      for (size_t g = 0; g < 8; ++g) {
        out[g] = -64 * (g % 2 == 0 ? low_half(words[g / 2]) : words[g / 2] >> 16);
      }
    } else {
      for (size_t c = 0; c < 8; ++c) {
        out[c] = -64 * low_half(words[4 + c]);
        out[8 + c] = -64 * (words[4 + c] >> 16);
      }
    }
  }

  // Tokens [0, n) of x.
  Activations fill(const Activations& x, size_t n, size_t cols) {
    alignas(64) uint8_t from[64];
    for (size_t i = 0; i < 64; ++i) {
      from[i] = static_cast<uint8_t>(kScaleColumns == 32
                                         ? i / 32 * 32 + i % 4 * 8 + i % 32 / 4
                                         : i / 16 * 16 + i % 2 * 8 + i % 4 / 2 * 4 + i % 16 / 4);
    }
    const __m512i order = _mm512_load_si512(from);
    Activations out = x;
    out.q = q;
    out.q_stride = cols;
    out.sums = sums;
    out.sum_stride = cols / kScaleColumns;
    for (size_t t = 0; t < n; ++t) {
      for (size_t c = 0; c < cols; c += 64) {
        const __m512i bytes = _mm512_loadu_si512(x.q + t * x.q_stride + c);
        _mm512_store_si512(q + t * cols + c, _mm512_permutexvar_epi8(order, bytes));
      }
      for (size_t b = 0; b < cols / 256; ++b) {
        rearrange_sums(x.sums + t * x.sum_stride + kSumWordsPerBlock256 * b,
                       sums + t * out.sum_stride + 256 / kScaleColumns * b);
      }
    }
    return out;
  }
};

// `wide` serves rows longer than the rearranged x may be, with the same bits.
template <class Type>
[[gnu::always_inline]] inline void run(const MatVecArgs& args, void (*wide)(const MatVecArgs&)) {
  Rearranged<Type::kScaleColumns> rearranged;
  const size_t fitting = sizeof(rearranged.q) / (args.cols + 1);
  if (fitting == 0) return wide(args);
  const size_t chunk = fitting < 8 ? fitting : fitting / 8 * 8;
  for (size_t first = 0; first < args.n_tokens; first += chunk) {
    MatVecArgs part = args;
    part.n_tokens = smaller(chunk, args.n_tokens - first);
    part.x = rearranged.fill(skip_tokens(args.x, first), part.n_tokens, args.cols);
    part.y = args.y + first * args.y_stride;
    run_rows<Permutes<Type>, 8, 4, 2, 1>(part);
  }
}

}  // namespace

void matvec_iq2_xxs(const MatVecArgs& args) { run<IQ2_XXS>(args, avx2::matvec_iq2_xxs); }
void matvec_iq2_xs(const MatVecArgs& args) { run<IQ2_XS>(args, avx2::matvec_iq2_xs); }
void matvec_iq2_s(const MatVecArgs& args) { run<IQ2_S>(args, avx2::matvec_iq2_s); }
void matvec_iq3_xxs(const MatVecArgs& args) { run<IQ3_XXS>(args, avx2::matvec_iq3_xxs); }
void matvec_iq3_s(const MatVecArgs& args) { run<IQ3_S>(args, avx2::matvec_iq3_s); }

}  // namespace godwit::cpu::avx512vnni
