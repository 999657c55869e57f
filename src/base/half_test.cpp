#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace godwit {
namespace {

// _Float16 is the compiler's own conversion: an independent witness for every bit pattern.
TEST(Half, WidensEveryPatternLikeTheCompiler) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const auto bits = static_cast<uint16_t>(h);
    const auto expected = static_cast<float>(bit_cast_hd<_Float16>(bits));
    const float found = f16_to_f32(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << h;
    } else {
      ASSERT_EQ(bit_cast_hd<uint32_t>(found), bit_cast_hd<uint32_t>(expected)) << h;
    }
  }
}

TEST(Half, NarrowsLikeTheCompilerAroundEveryPattern) {
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    const float low = f16_to_f32(static_cast<uint16_t>(h));
    const float high = h == 0x7bff ? 65536.0f : f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = 0.5f * (low + high);
    for (const float f : {low, std::nextafter(low, 1e9f), std::nextafter(middle, 0.0f), middle,
                          std::nextafter(middle, 1e9f)}) {
      ASSERT_EQ(f32_to_f16(f), bit_cast_hd<uint16_t>(static_cast<_Float16>(f))) << f;
      ASSERT_EQ(f32_to_f16(-f), bit_cast_hd<uint16_t>(static_cast<_Float16>(-f))) << -f;
    }
  }
}

TEST(Half, Bf16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(bit_cast_hd<float>(0x3f808000u)), 0x3f80);  // a tie goes to even
  EXPECT_EQ(f32_to_bf16(bit_cast_hd<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(bit_cast_hd<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(INFINITY), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(bit_cast_hd<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace godwit
