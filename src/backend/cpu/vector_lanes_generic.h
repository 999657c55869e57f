// Sixteen lanes of f32 without any vector instruction: the definition of what the AVX versions of
// the same words (vector_lanes_avx2.h, vector_lanes_avx512.h) compute, bit for bit. Unnamed
// namespace as in isa_rows.h, since the AVX twins are compiled with other flags.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace godwit::cpu {
namespace {

struct GenericLanes {
  // Vectors beside each other in a register tile of so many rows (attention_body.h).
  static constexpr size_t columns(size_t /*rows*/) { return 1; }
  // Vectors of sums beside each other (attention_quantized_body.h).
  static constexpr size_t kSumColumns = 1;

  float v[16];

  template <class F>
  static GenericLanes each(F f) {
    GenericLanes r;
    for (size_t i = 0; i < 16; ++i) r.v[i] = f(i);
    return r;
  }

  static GenericLanes zero() { return splat(0.0f); }
  static GenericLanes splat(float x) {
    return each([=](size_t) { return x; });
  }
  // What attention over blocks needs of whole numbers (attention_quantized_body.h). Codes: sixteen
  // lanes of four bytes without sign.
  struct Codes {
    uint8_t v[16][4];
  };
  static Codes load_codes(const uint8_t* p) {
    Codes codes;
    std::memcpy(codes.v, p, sizeof codes.v);
    return codes;
  }
  static Codes low_nibbles(Codes x) {
    for (auto& lane : x.v) {
      for (uint8_t& code : lane) code &= 0x0f;
    }
    return x;
  }
  static Codes high_nibbles(Codes x) {
    for (auto& lane : x.v) {
      for (uint8_t& code : lane) code >>= 4;
    }
    return x;
  }
  // Sums of whole numbers below 2^31 in all.
  struct Sums {
    int32_t v[16];
  };
  // Sixteen factors in 32 bytes, as each instruction set likes them: the nearest whole numbers,
  // ties to even. |a| < 32640, or they are anything. Adds them to `sums`, lane by lane.
  static void store_factors(GenericLanes a, uint8_t* p, Sums& sums) {
    constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
    for (size_t i = 0; i < 16; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(a.v[i] + kMagic);
      const auto whole = static_cast<int16_t>(bits - std::bit_cast<uint32_t>(kMagic));
      std::memcpy(p + 2 * i, &whole, sizeof whole);
      sums.v[i] += whole;
    }
  }
  static Sums no_sums() { return {}; }
  static int32_t all(Sums sums) {
    int32_t sum = 0;
    for (const int32_t one : sums.v) sum += one;
    return sum;
  }
  // Factors 4 * four to 4 * four + 3 of sixteen, in every lane.
  struct Factors {
    int16_t v[4];
  };
  static Factors factors(const uint8_t* p, size_t four) {
    Factors f;
    std::memcpy(f.v, p + 8 * four, sizeof f.v);
    return f;
  }
  struct Products {
    int32_t v[16];
  };
  static Products products_from(int32_t start) {
    Products products;
    for (int32_t& sum : products.v) sum = start;
    return products;
  }
  static void add_products(Codes codes, Factors f, Products& sums) {
    for (size_t i = 0; i < 16; ++i) {
      for (size_t k = 0; k < 4; ++k) sums.v[i] += codes.v[i][k] * f.v[k];
    }
  }
  static GenericLanes total(Products sums) {
    return each([&](size_t i) { return static_cast<float>(sums.v[i]); });
  }

  // The first n of 16, the others 0.
  static GenericLanes load(const float* p, size_t n) {
    return each([=](size_t i) { return i < n ? p[i] : 0.0f; });
  }
  static GenericLanes load_f16(const uint16_t* p, size_t n) {
    return each([=](size_t i) { return i < n ? f16_to_f32(p[i]) : 0.0f; });
  }
  static GenericLanes load_bf16(const uint16_t* p, size_t n) {
    return each([=](size_t i) { return i < n ? bf16_to_f32(p[i]) : 0.0f; });
  }
  static void store(GenericLanes a, float* p, size_t n) {
    for (size_t i = 0; i < n; ++i) p[i] = a.v[i];
  }
  static void store_f16(GenericLanes a, uint16_t* p, size_t n) {
    for (size_t i = 0; i < n; ++i) p[i] = f32_to_f16(a.v[i]);
  }
  static void store_bf16(GenericLanes a, uint16_t* p, size_t n) {
    for (size_t i = 0; i < n; ++i) p[i] = f32_to_bf16(a.v[i]);
  }

  static GenericLanes add(GenericLanes a, GenericLanes b) {
    return each([&](size_t i) { return a.v[i] + b.v[i]; });
  }
  static GenericLanes sub(GenericLanes a, GenericLanes b) {
    return each([&](size_t i) { return a.v[i] - b.v[i]; });
  }
  static GenericLanes mul(GenericLanes a, GenericLanes b) {
    return each([&](size_t i) { return a.v[i] * b.v[i]; });
  }
  static GenericLanes div(GenericLanes a, GenericLanes b) {
    return each([&](size_t i) { return a.v[i] / b.v[i]; });
  }
  // a * b + c, rounded once.
  static GenericLanes fma(GenericLanes a, GenericLanes b, GenericLanes c) {
    return each([&](size_t i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  // b where they do not compare, as the instructions have it.
  static GenericLanes max(GenericLanes a, GenericLanes b) {
    return each([&](size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static GenericLanes min(GenericLanes a, GenericLanes b) {
    return each([&](size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  // value, or 0 where a < b.
  static GenericLanes zero_where_less(GenericLanes a, GenericLanes b, GenericLanes value) {
    return each([&](size_t i) { return a.v[i] < b.v[i] ? 0.0f : value.v[i]; });
  }
  // 2^n from the bits of 1.5 * 2^23 + n, for -126 <= n <= 127.
  static GenericLanes power_of_two(GenericLanes a) {
    return each([&](size_t i) {
      return std::bit_cast<float>((std::bit_cast<uint32_t>(a.v[i]) << 23) + 0x3f800000u);
    });
  }

  // Lane i with lane i + 8, then + 4, + 2, + 1.
  static float sum(GenericLanes a) {
    for (size_t width = 8; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) a.v[i] += a.v[i + width];
    }
    return a.v[0];
  }
  static float largest(GenericLanes a) {
    for (size_t width = 8; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
    }
    return a.v[0];
  }

  // Sums of squares in f64: the square of an f32 is exact there, so an fma is a plain addition.
  struct Squares {
    double v[16] = {};
    void add(GenericLanes a) {
      for (size_t i = 0; i < 16; ++i) {
        const double x = static_cast<double>(a.v[i]);
        v[i] += x * x;
      }
    }
    double sum() {
      for (size_t width = 8; width > 0; width /= 2) {
        for (size_t i = 0; i < width; ++i) v[i] += v[i + width];
      }
      return v[0];
    }
  };
};

}  // namespace
}  // namespace godwit::cpu
