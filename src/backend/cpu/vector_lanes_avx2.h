// The words of vector_lanes_generic.h in AVX2 with FMA and F16C: two registers, lanes 0 to 7 and 8
// to 15. Included only by files compiled for AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"

namespace godwit::cpu {
namespace {

struct Avx2Lanes {
  // Vectors beside each other in a register tile of so many rows (attention_body.h).
  static constexpr size_t columns(size_t rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
  // Vectors of sums beside each other (attention_quantized_body.h).
  static constexpr size_t kSumColumns = 1;

  __m256 a;
  __m256 b;

  // Products of bytes would overflow sums of 16 bits: codes are widened, the even ones of a lane
  // and the odd ones, and so are factors.
  struct Codes {
    __m256i a;
    __m256i b;
  };
  static __m256i load_bytes(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Codes load_codes(const uint8_t* p) { return {load_bytes(p), load_bytes(p + 32)}; }
  static Codes low_nibbles(Codes x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
  }
  static Codes high_nibbles(Codes x) {
    return low_nibbles({_mm256_srli_epi16(x.a, 4), _mm256_srli_epi16(x.b, 4)});
  }
  struct Sums {
    __m256i v;
  };
  // Words, of every four in the order 0, 2, 1, 3.
  static void store_factors(Avx2Lanes x, uint8_t* p, Sums& sums) {
    const __m256i a = _mm256_cvtps_epi32(x.a);
    const __m256i b = _mm256_cvtps_epi32(x.b);
    sums.v = _mm256_add_epi32(sums.v, _mm256_add_epi32(a, b));
    // Packing interleaves the halves of the registers; the permutation puts them in order.
    const __m256i ordered = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m256i even_odd = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(ordered, 0xd8), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), even_odd);
  }
  static Sums no_sums() { return {_mm256_setzero_si256()}; }
  static int32_t all(Sums sums) {
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(sums.v), _mm256_extracti128_si256(sums.v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  struct Factors {
    __m256i even;
    __m256i odd;
  };
  static __m256i splat_dword(const uint8_t* p) {
    int32_t dword = 0;
    __builtin_memcpy(&dword, p, sizeof dword);
    return _mm256_set1_epi32(dword);
  }
  static Factors factors(const uint8_t* p, size_t four) {
    return {splat_dword(p + 8 * four), splat_dword(p + 8 * four + 4)};
  }
  struct Products {
    __m256i a;
    __m256i b;
  };
  static Products products_from(int32_t start) {
    return {_mm256_set1_epi32(start), _mm256_set1_epi32(start)};
  }
  static __m256i products(__m256i codes, Factors f) {
    const __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(255));
    return _mm256_add_epi32(_mm256_madd_epi16(even, f.even),
                            _mm256_madd_epi16(_mm256_srli_epi16(codes, 8), f.odd));
  }
  static void add_products(Codes codes, Factors f, Products& sums) {
    sums.a = _mm256_add_epi32(sums.a, products(codes.a, f));
    sums.b = _mm256_add_epi32(sums.b, products(codes.b, f));
  }
  static Avx2Lanes total(Products sums) {
    return {_mm256_cvtepi32_ps(sums.a), _mm256_cvtepi32_ps(sums.b)};
  }

  static Avx2Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Avx2Lanes splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }

  // Partial vectors go through the stack: masked moves know no 16-bit lanes here.
  static Avx2Lanes load(const float* p, size_t n) {
    if (n >= 16) return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
    float padded[16] = {};
    __builtin_memcpy(padded, p, n * sizeof(float));
    return {_mm256_loadu_ps(padded), _mm256_loadu_ps(padded + 8)};
  }
  static __m256i load_words(const uint16_t* p, size_t n) {
    if (n >= 16) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    uint16_t padded[16] = {};
    __builtin_memcpy(padded, p, n * sizeof(uint16_t));
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(padded));
  }
  static void store_words(__m256i words, uint16_t* p, size_t n) {
    if (n >= 16) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
      return;
    }
    uint16_t padded[16];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(padded), words);
    __builtin_memcpy(p, padded, n * sizeof(uint16_t));
  }
  static Avx2Lanes load_f16(const uint16_t* p, size_t n) {
    const __m256i words = load_words(p, n);
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(words)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1))};
  }
  static __m256 widen_bf16(__m128i words) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }
  static Avx2Lanes load_bf16(const uint16_t* p, size_t n) {
    const __m256i words = load_words(p, n);
    return {widen_bf16(_mm256_castsi256_si128(words)),
            widen_bf16(_mm256_extracti128_si256(words, 1))};
  }
  static void store(Avx2Lanes x, float* p, size_t n) {
    if (n >= 16) {
      _mm256_storeu_ps(p, x.a);
      _mm256_storeu_ps(p + 8, x.b);
      return;
    }
    float padded[16];
    _mm256_storeu_ps(padded, x.a);
    _mm256_storeu_ps(padded + 8, x.b);
    __builtin_memcpy(p, padded, n * sizeof(float));
  }
  static void store_f16(Avx2Lanes x, uint16_t* p, size_t n) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    store_words(_mm256_set_m128i(_mm256_cvtps_ph(x.b, kNearest), _mm256_cvtps_ph(x.a, kNearest)), p,
                n);
  }
  static __m256i narrow_bf16(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quiet, nan);
  }
  static void store_bf16(Avx2Lanes x, uint16_t* p, size_t n) {
    // Packing interleaves the halves of the registers; the permutation puts them in order.
    const __m256i packed = _mm256_packus_epi32(narrow_bf16(x.a), narrow_bf16(x.b));
    store_words(_mm256_permute4x64_epi64(packed, 0xd8), p, n);
  }

  static Avx2Lanes add(Avx2Lanes x, Avx2Lanes y) {
    return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
  }
  static Avx2Lanes sub(Avx2Lanes x, Avx2Lanes y) {
    return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
  }
  static Avx2Lanes mul(Avx2Lanes x, Avx2Lanes y) {
    return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
  }
  static Avx2Lanes div(Avx2Lanes x, Avx2Lanes y) {
    return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
  }
  static Avx2Lanes fma(Avx2Lanes x, Avx2Lanes y, Avx2Lanes z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  static Avx2Lanes max(Avx2Lanes x, Avx2Lanes y) {
    return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
  }
  static Avx2Lanes min(Avx2Lanes x, Avx2Lanes y) {
    return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
  }
  static Avx2Lanes zero_where_less(Avx2Lanes x, Avx2Lanes y, Avx2Lanes value) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), value.a),
            _mm256_andnot_ps(_mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ), value.b)};
  }
  static __m256 power_of_two(__m256 x) {
    const __m256i shifted = _mm256_slli_epi32(_mm256_castps_si256(x), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(0x3f800000)));
  }
  static Avx2Lanes power_of_two(Avx2Lanes x) { return {power_of_two(x.a), power_of_two(x.b)}; }

  static float sum(Avx2Lanes x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float largest(Avx2Lanes x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  struct Squares {
    __m256d v[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                    _mm256_setzero_pd()};
    void add_four(size_t i, __m128 four) {
      const __m256d x = _mm256_cvtps_pd(four);
      v[i] = _mm256_fmadd_pd(x, x, v[i]);
    }
    void add(Avx2Lanes x) {
      add_four(0, _mm256_castps256_ps128(x.a));
      add_four(1, _mm256_extractf128_ps(x.a, 1));
      add_four(2, _mm256_castps256_ps128(x.b));
      add_four(3, _mm256_extractf128_ps(x.b, 1));
    }
    double sum() {
      const __m256d four = _mm256_add_pd(_mm256_add_pd(v[0], v[2]), _mm256_add_pd(v[1], v[3]));
      const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
      return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
    }
  };
};

}  // namespace
}  // namespace godwit::cpu
