#include "quant/bf16.h"
#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/f16.h"
#include "quant/f32.h"

namespace godwit::quant {

void encode_f32(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockF32>(weights, out, [](auto x) { return BlockF32{x[0]}; });
}

void encode_f16(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockF16>(weights, out, [](auto x) { return BlockF16{f32_to_f16(x[0])}; });
}

void encode_bf16(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockBF16>(weights, out, [](auto x) { return BlockBF16{f32_to_bf16(x[0])}; });
}

}  // namespace godwit::quant
