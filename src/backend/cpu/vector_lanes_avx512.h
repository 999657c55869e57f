// The words of vector_lanes_generic.h in AVX-512: one register. Included only by files compiled
// for AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"

namespace godwit::cpu {
namespace {

struct Avx512Lanes {
  // Vectors beside each other in a register tile of so many rows (attention_body.h).
  static constexpr size_t columns(size_t rows) { return rows <= 2 ? 8 : 4; }
  // Vectors of sums beside each other (attention_quantized_body.h).
  static constexpr size_t kSumColumns = 2;

  __m512 v;

  static __mmask16 first(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }

  static constexpr long long kTopBits = -0x7f7f7f7f7f7f7f80;  // of eight bytes

  struct Codes {
    __m512i v;
  };
  static Codes load_codes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  static Codes low_nibbles(Codes x) { return {_mm512_and_si512(x.v, _mm512_set1_epi8(15))}; }
  static Codes high_nibbles(Codes x) {
    return {_mm512_and_si512(_mm512_srli_epi16(x.v, 4), _mm512_set1_epi8(15))};
  }
  struct Sums {
    __m512i v;
  };
  // Two planes: sixteen high bytes, then sixteen low ones, both with sign: 256 high + low. Raised
  // by 128, bytes 1 of the dwords are the former and bytes 0, their highest bit turned, the latter.
  static void store_factors(Avx512Lanes a, uint8_t* p, Sums& sums) {
    const __m512i places = _mm512_castsi256_si512(
        _mm256_setr_epi8(1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57, 61, 0, 4, 8, 12,
                         16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60));
    const __m256i turned = _mm256_setr_epi64x(0, 0, kTopBits, kTopBits);
    const __m512i whole = _mm512_cvtps_epi32(a.v);
    sums.v = _mm512_add_epi32(sums.v, whole);
    const __m512i raised = _mm512_add_epi32(whole, _mm512_set1_epi32(128));
    const __m256i planes = _mm512_castsi512_si256(_mm512_permutexvar_epi8(places, raised));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_xor_si256(planes, turned));
  }
  static Sums no_sums() { return {_mm512_setzero_si512()}; }
  // Wraps around, as _mm512_reduce_add_epi32 is not allowed to.
  static int32_t all(Sums sums) {
    const __m256i eight =
        _mm256_add_epi32(_mm512_castsi512_si256(sums.v), _mm512_extracti64x4_epi64(sums.v, 1));
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  struct Factors {
    __m512i high;
    __m512i low;
  };
  static __m512i splat_dword(const uint8_t* p) {
    int32_t dword = 0;
    __builtin_memcpy(&dword, p, sizeof dword);
    return _mm512_set1_epi32(dword);
  }
  static Factors factors(const uint8_t* p, size_t four) {
    return {splat_dword(p + 4 * four), splat_dword(p + 16 + 4 * four)};
  }
  struct Products {
    __m512i high;
    __m512i low;
  };
  static Products products_from(int32_t start) {
    return {_mm512_setzero_si512(), _mm512_set1_epi32(start)};
  }
  static void add_products(Codes codes, Factors f, Products& sums) {
    sums.high = _mm512_dpbusd_epi32(sums.high, codes.v, f.high);
    sums.low = _mm512_dpbusd_epi32(sums.low, codes.v, f.low);
  }
  static Avx512Lanes total(Products sums) {
    const __m512i whole = _mm512_add_epi32(_mm512_slli_epi32(sums.high, 8), sums.low);
    return {_mm512_cvtepi32_ps(whole)};
  }

  static Avx512Lanes zero() { return {_mm512_setzero_ps()}; }
  static Avx512Lanes splat(float x) { return {_mm512_set1_ps(x)}; }
  static Avx512Lanes load(const float* p, size_t n) {
    return {n >= 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(first(n), p)};
  }
  static __m256i load_words(const uint16_t* p, size_t n) {
    return n >= 16 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                   : _mm256_maskz_loadu_epi16(first(n), p);
  }
  static void store_words(__m256i words, uint16_t* p, size_t n) {
    if (n >= 16) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
    } else {
      _mm256_mask_storeu_epi16(p, first(n), words);
    }
  }
  static Avx512Lanes load_f16(const uint16_t* p, size_t n) {
    return {_mm512_cvtph_ps(load_words(p, n))};
  }
  static Avx512Lanes load_bf16(const uint16_t* p, size_t n) {
    const __m512i wide = _mm512_cvtepu16_epi32(load_words(p, n));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static void store(Avx512Lanes a, float* p, size_t n) {
    if (n >= 16) {
      _mm512_storeu_ps(p, a.v);
    } else {
      _mm512_mask_storeu_ps(p, first(n), a.v);
    }
  }
  static void store_f16(Avx512Lanes a, uint16_t* p, size_t n) {
    store_words(_mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), p, n);
  }
  static void store_bf16(Avx512Lanes a, uint16_t* p, size_t n) {
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
    const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    store_words(_mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet)), p, n);
  }

  static Avx512Lanes add(Avx512Lanes a, Avx512Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
  static Avx512Lanes sub(Avx512Lanes a, Avx512Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
  static Avx512Lanes mul(Avx512Lanes a, Avx512Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static Avx512Lanes div(Avx512Lanes a, Avx512Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Avx512Lanes fma(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  static Avx512Lanes max(Avx512Lanes a, Avx512Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Avx512Lanes min(Avx512Lanes a, Avx512Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Avx512Lanes zero_where_less(Avx512Lanes a, Avx512Lanes b, Avx512Lanes value) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLT_UQ), value.v)};
  }
  static Avx512Lanes power_of_two(Avx512Lanes a) {
    const __m512i shifted = _mm512_slli_epi32(_mm512_castps_si512(a.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(shifted, _mm512_set1_epi32(0x3f800000)))};
  }

  static float sum(Avx512Lanes a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float largest(Avx512Lanes a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  struct Squares {
    __m512d low = _mm512_setzero_pd();   // lanes 0 to 7
    __m512d high = _mm512_setzero_pd();  // lanes 8 to 15
    void add(Avx512Lanes a) {
      const __m512d x = _mm512_cvtps_pd(_mm512_castps512_ps256(a.v));
      const __m512d y = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1));
      low = _mm512_fmadd_pd(x, x, low);
      high = _mm512_fmadd_pd(y, y, high);
    }
    double sum() {
      const __m512d eight = _mm512_add_pd(low, high);
      const __m256d four =
          _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
      const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
      return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
    }
  };
};

}  // namespace
}  // namespace godwit::cpu
