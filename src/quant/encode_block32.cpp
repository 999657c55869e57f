// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 on their own.
#include <array>
#include <cmath>

#include "quant/encode_affine.h"
#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/encode_half.h"
#include "quant/encode_importance.h"
#include "quant/encode_scale.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q8_0.h"

namespace godwit::quant {
namespace {

using Weights32 = std::span<const float, 32>;
using Codes32 = std::array<uint8_t, 32>;

std::array<float, 32> importance(Weights32 x) {
  std::array<float, 32> w;
  raised_magnitudes(x, std::span(w));
  return w;
}

// The low four bits of the codes, as Q4_0 to Q5_1 pack them.
void pack_low(const Codes32& codes, uint8_t* qs) {
  for (size_t i = 0; i < 16; ++i) {
    qs[i] = static_cast<uint8_t>((codes[i] & 0x0f) | (codes[i + 16] & 0x0f) << 4);
  }
}

// The fifth bits, as Q5_0 and Q5_1 pack them.
void pack_high(const Codes32& codes, uint8_t* qh) {
  for (size_t byte = 0; byte < 4; ++byte) {
    unsigned bits = 0;
    for (size_t i = 0; i < 8; ++i) bits |= static_cast<unsigned>(codes[8 * byte + i] >> 4) << i;
    qh[byte] = static_cast<uint8_t>(bits);
  }
}

struct ScaledCodes {
  HalfScale scale;
  Codes32 codes{};
};

template <class Levels>
ScaledCodes encode_scaled(Weights32 x) {
  ScaledCodes result;
  result.scale = half_scale(fit_scale<Levels>(x, Weights32(importance(x))));
  const float inverse = inverse_or_zero(result.scale.value);
  for (size_t i = 0; i < 32; ++i) {
    result.codes[i] = Levels::code(inverse * x[i]);
  }
  return result;
}

struct AffineCodes {
  uint16_t scale = 0;
  uint16_t offset = 0;
  Codes32 codes{};
};

AffineCodes encode_affine(Weights32 x, float last_code) {
  const Affine line =
      fit_affine(x, Weights32(importance(x)), {.last_code = last_code, .sign = OffsetSign::kAny});
  const HalfScale scale = half_scale(line.scale);
  AffineCodes result{.scale = scale.bits, .offset = f32_to_f16(line.offset)};
  const float offset = f16_to_f32(result.offset);
  const float inverse = inverse_or_zero(scale.value);
  for (size_t i = 0; i < 32; ++i) {
    const float exact = std::min(std::max(inverse * (x[i] - offset), 0.0f), last_code);
    result.codes[i] = static_cast<uint8_t>(nearest_whole(exact));
  }
  return result;
}

// The largest magnitude becomes 127. At eight bits a search gains next to nothing, and these are
// the bits that other quantisers write.
BlockQ8_0 encode_q8_0_block(Weights32 x) {
  BlockQ8_0 block{};
  float scale = std::fabs(largest_magnitude(x)) / 127.0f;
  const HalfScale half = half_scale(scale);
  block.d = half.bits;
  // A subnormal binary16 may be far from the scale: codes must fit what is stored.
  if (scale < 0x1p-14f) scale = half.value;
  const float inverse = inverse_or_zero(scale);
  for (size_t i = 0; i < 32; ++i) {
    block.qs[i] =
        static_cast<int8_t>(std::min(std::max(std::round(x[i] * inverse), -127.0f), 127.0f));
  }
  return block;
}

}  // namespace

void encode_q8_0(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ8_0>(weights, out, encode_q8_0_block);
}

void encode_q4_0(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ4_0>(weights, out, [](Weights32 x) {
    const ScaledCodes found = encode_scaled<UniformLevels<-8, 7>>(x);
    BlockQ4_0 block{.d = found.scale.bits, .qs = {}};
    pack_low(found.codes, block.qs);
    return block;
  });
}

void encode_q5_0(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ5_0>(weights, out, [](Weights32 x) {
    const ScaledCodes found = encode_scaled<UniformLevels<-16, 15>>(x);
    BlockQ5_0 block{.d = found.scale.bits, .qh = {}, .qs = {}};
    pack_low(found.codes, block.qs);
    pack_high(found.codes, block.qh);
    return block;
  });
}

void encode_q4_1(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ4_1>(weights, out, [](Weights32 x) {
    const AffineCodes found = encode_affine(x, 15);
    BlockQ4_1 block{.d = found.scale, .m = found.offset, .qs = {}};
    pack_low(found.codes, block.qs);
    return block;
  });
}

void encode_q5_1(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ5_1>(weights, out, [](Weights32 x) {
    const AffineCodes found = encode_affine(x, 31);
    BlockQ5_1 block{.d = found.scale, .m = found.offset, .qh = {}, .qs = {}};
    pack_low(found.codes, block.qs);
    pack_high(found.codes, block.qh);
    return block;
  });
}

}  // namespace godwit::quant
