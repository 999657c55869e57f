#include "quant/encode_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "quant/encode_functions.h"

namespace godwit::quant {
namespace {

constexpr float kMaxF32 = std::numeric_limits<float>::max();
constexpr float kMaxF16 = 65504.0f;
constexpr float kMaxBF16 = 0x1.fep127f;
constexpr size_t kWeightsPerTurn = 16384;  // what a thread takes at a time: a millisecond or so

constexpr auto kEncoders = std::to_array<Encoder>({
    {TensorType::kF32, kMaxF32, encode_f32},         {TensorType::kF16, kMaxF16, encode_f16},
    {TensorType::kQ4_0, kMaxF16, encode_q4_0},       {TensorType::kQ4_1, kMaxF16, encode_q4_1},
    {TensorType::kQ5_0, kMaxF16, encode_q5_0},       {TensorType::kQ5_1, kMaxF16, encode_q5_1},
    {TensorType::kQ8_0, kMaxF16, encode_q8_0},       {TensorType::kQ2_K, kMaxF16, encode_q2_k},
    {TensorType::kQ3_K, kMaxF16, encode_q3_k},       {TensorType::kQ4_K, kMaxF16, encode_q4_k},
    {TensorType::kQ5_K, kMaxF16, encode_q5_k},       {TensorType::kQ6_K, kMaxF16, encode_q6_k},
    {TensorType::kIQ2_XXS, kMaxF16, encode_iq2_xxs}, {TensorType::kIQ2_XS, kMaxF16, encode_iq2_xs},
    {TensorType::kIQ3_XXS, kMaxF16, encode_iq3_xxs}, {TensorType::kIQ4_NL, kMaxF16, encode_iq4_nl},
    {TensorType::kIQ3_S, kMaxF16, encode_iq3_s},     {TensorType::kIQ2_S, kMaxF16, encode_iq2_s},
    {TensorType::kIQ4_XS, kMaxF16, encode_iq4_xs},   {TensorType::kBF16, kMaxBF16, encode_bf16},
});
static_assert(std::is_sorted(kEncoders.begin(), kEncoders.end(),
                             [](const Encoder& a, const Encoder& b) { return a.type < b.type; }));

}  // namespace

std::span<const Encoder> encoders() { return kEncoders; }

const Encoder* find_encoder(TensorType type) {
  for (const Encoder& encoder : kEncoders) {
    if (encoder.type == type) return &encoder;
  }
  return nullptr;
}

size_t first_unfit(const Encoder& encoder, std::span<const float> weights) {
  // Written so that NaN fails it.
  const auto fits = [&](float x) { return std::fabs(x) <= encoder.max_magnitude; };
  return static_cast<size_t>(std::find_if_not(weights.begin(), weights.end(), fits) -
                             weights.begin());
}

std::string unfit_reason(const Encoder& encoder, float weight) {
  if (!std::isfinite(weight)) return fmt::format("expected a finite number, found {}", weight);
  return fmt::format("{} holds magnitudes up to {}, found {}", tensor_type_name(encoder.type),
                     encoder.max_magnitude, weight);
}

void encode_weights(const Encoder& encoder, std::span<const float> weights, ThreadPool& pool,
                    std::span<std::byte> out) {
  const TensorGeometry& geometry = tensor_geometry(encoder.type);
  const size_t n_blocks = weights.size() / geometry.block_weights;
  check(n_blocks * geometry.block_weights == weights.size() &&
            n_blocks * geometry.block_bytes == out.size(),
        "encode_weights takes whole blocks and their exact place");
  const size_t turn = kWeightsPerTurn / geometry.block_weights;
  std::atomic<size_t> next{0};
  pool.run([&](size_t) {
    for (size_t at = next.fetch_add(turn); at < n_blocks; at = next.fetch_add(turn)) {
      const size_t n = std::min(turn, n_blocks - at);
      encoder.encode(weights.subspan(at * geometry.block_weights, n * geometry.block_weights),
                     out.subspan(at * geometry.block_bytes, n * geometry.block_bytes));
    }
  });
}

}  // namespace godwit::quant
