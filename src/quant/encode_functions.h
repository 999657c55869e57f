// The encoders of encode_table.cpp, one per type, each in encode_<family>.cpp. Each takes whole
// blocks of finite weights that are not larger than its row in the table says, and writes the
// blocks in file layout (no alignment needed). Host only; no state, so any number of threads.
#pragma once

#include <cstddef>
#include <span>

namespace godwit::quant {

void encode_f32(std::span<const float> weights, std::span<std::byte> out);
void encode_f16(std::span<const float> weights, std::span<std::byte> out);
void encode_bf16(std::span<const float> weights, std::span<std::byte> out);
void encode_q4_0(std::span<const float> weights, std::span<std::byte> out);
void encode_q4_1(std::span<const float> weights, std::span<std::byte> out);
void encode_q5_0(std::span<const float> weights, std::span<std::byte> out);
void encode_q5_1(std::span<const float> weights, std::span<std::byte> out);
void encode_q8_0(std::span<const float> weights, std::span<std::byte> out);
void encode_q2_k(std::span<const float> weights, std::span<std::byte> out);
void encode_q3_k(std::span<const float> weights, std::span<std::byte> out);
void encode_q4_k(std::span<const float> weights, std::span<std::byte> out);
void encode_q5_k(std::span<const float> weights, std::span<std::byte> out);
void encode_q6_k(std::span<const float> weights, std::span<std::byte> out);
void encode_iq2_xxs(std::span<const float> weights, std::span<std::byte> out);
void encode_iq2_xs(std::span<const float> weights, std::span<std::byte> out);
void encode_iq2_s(std::span<const float> weights, std::span<std::byte> out);
void encode_iq3_xxs(std::span<const float> weights, std::span<std::byte> out);
void encode_iq3_s(std::span<const float> weights, std::span<std::byte> out);
void encode_iq4_nl(std::span<const float> weights, std::span<std::byte> out);
void encode_iq4_xs(std::span<const float> weights, std::span<std::byte> out);

}  // namespace godwit::quant
