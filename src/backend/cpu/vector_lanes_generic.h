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
  // Tiles of sums of pairs beside each other (attention_quantized_body.h).
  static constexpr size_t kSumTiles = 1;

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
  // Sixteen dwords, each a sum or a pair of signed words, the first in the low half.
  struct Pairs {
    int32_t v[16];

    template <class F>
    static Pairs each(F f) {
      Pairs r;
      for (size_t i = 0; i < 16; ++i) r.v[i] = f(i);
      return r;
    }
    static int32_t join(int32_t low, int32_t high) {
      return std::bit_cast<int32_t>((std::bit_cast<uint32_t>(low) & 0xffffu) |
                                    std::bit_cast<uint32_t>(high) << 16);
    }
    static int32_t low(int32_t pair) { return static_cast<int16_t>(pair & 0xffff); }
    static int32_t high(int32_t pair) { return pair >> 16; }

    static Pairs splat(int32_t x) {
      return each([=](size_t) { return x; });
    }
    static Pairs splat_pair(const int16_t* p) { return splat(join(p[0], p[1])); }
    // 64 bytes as they are.
    static Pairs load(const uint8_t* p) {
      Pairs r;
      std::memcpy(r.v, p, sizeof r.v);
      return r;
    }
    // 32 signed bytes, widened.
    static Pairs load_bytes(const int8_t* p) {
      return each([=](size_t i) { return join(p[2 * i], p[2 * i + 1]); });
    }
    // Four bits from kShift on of both halves of a dword.
    template <int kShift>
    static Pairs nibbles(Pairs x) {
      return each([&](size_t i) {
        return std::bit_cast<int32_t>(std::bit_cast<uint32_t>(x.v[i]) >> kShift & 0x000f000fu);
      });
    }
    // sum + both products.
    static Pairs dot(Pairs sum, Pairs a, Pairs b) {
      return each([&](size_t i) {
        return sum.v[i] + low(a.v[i]) * low(b.v[i]) + high(a.v[i]) * high(b.v[i]);
      });
    }
  };
  static GenericLanes from_sums(Pairs sums) {
    return each([&](size_t i) { return static_cast<float>(sums.v[i]); });
  }
  // To the nearest whole number, ties to even; |a| <= 32767.
  static void store_whole(GenericLanes a, int16_t* p) {
    constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
    for (size_t i = 0; i < 16; ++i) {
      const int32_t bits = std::bit_cast<int32_t>(a.v[i] + kMagic);
      p[i] = static_cast<int16_t>(bits - std::bit_cast<int32_t>(kMagic));
    }
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
