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
  // Tiles of sums of pairs beside each other (attention_quantized_body.h).
  static constexpr size_t kSumTiles = 1;

  __m256 a;
  __m256 b;

  struct Pairs {
    __m256i a;
    __m256i b;

    static __m256i load_half(const void* p) {
      return _mm256_loadu_si256(static_cast<const __m256i*>(p));
    }
    static __m256i widen(const int8_t* p) {
      return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Pairs splat(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
    static Pairs splat_pair(const int16_t* p) {
      int32_t pair = 0;
      __builtin_memcpy(&pair, p, sizeof pair);
      return splat(pair);
    }
    static Pairs load(const uint8_t* p) { return {load_half(p), load_half(p + 32)}; }
    static Pairs load_bytes(const int8_t* p) { return {widen(p), widen(p + 16)}; }
    template <int kShift>
    static Pairs nibbles(Pairs x) {
      const __m256i mask = _mm256_set1_epi32(0x000f000f);
      return {_mm256_and_si256(_mm256_srli_epi32(x.a, kShift), mask),
              _mm256_and_si256(_mm256_srli_epi32(x.b, kShift), mask)};
    }
    static Pairs dot(Pairs sum, Pairs x, Pairs y) {
      return {_mm256_add_epi32(sum.a, _mm256_madd_epi16(x.a, y.a)),
              _mm256_add_epi32(sum.b, _mm256_madd_epi16(x.b, y.b))};
    }
  };
  static Avx2Lanes from_sums(Pairs sums) {
    return {_mm256_cvtepi32_ps(sums.a), _mm256_cvtepi32_ps(sums.b)};
  }
  static void store_whole(Avx2Lanes x, int16_t* p) {
    // Packing interleaves the halves of the registers; the permutation puts them in order.
    const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    store_words(_mm256_permute4x64_epi64(packed, 0xd8), reinterpret_cast<uint16_t*>(p), 16);
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
