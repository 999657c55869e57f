#include "quant/encode_table.h"

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
    {TensorType::kF32, kMaxF32, encode_f32},
    {TensorType::kF16, kMaxF16, encode_f16},
    {TensorType::kQ4_0, kMaxF16, encode_q4_0},
    {TensorType::kQ4_1, kMaxF16, encode_q4_1},
    {TensorType::kQ5_0, kMaxF16, encode_q5_0},
    {TensorType::kQ5_1, kMaxF16, encode_q5_1},
    {TensorType::kQ8_0, kMaxF16, encode_q8_0},
    {TensorType::kQ4_K, kMaxF16, encode_q4_k},
    {TensorType::kQ5_K, kMaxF16, encode_q5_k},
    {TensorType::kQ6_K, kMaxF16, encode_q6_k},
    {TensorType::kBF16, kMaxBF16, encode_bf16},
});
static_assert(std::is_sorted(kEncoders.begin(), kEncoders.end(),
                             [](const Encoder& a, const Encoder& b) { return a.type < b.type; }));

// The first weight that cannot be encoded, or the number of weights.
size_t first_unfit(const Encoder& encoder, std::span<const float> weights) {
  // Written so that NaN fails it.
  const auto fits = [&](float x) { return std::fabs(x) <= encoder.max_magnitude; };
  if (std::all_of(weights.begin(), weights.end(), fits)) return weights.size();
  return static_cast<size_t>(std::find_if_not(weights.begin(), weights.end(), fits) -
                             weights.begin());
}

}  // namespace

std::span<const Encoder> encoders() { return kEncoders; }

const Encoder* find_encoder(TensorType type) {
  for (const Encoder& encoder : kEncoders) {
    if (encoder.type == type) return &encoder;
  }
  return nullptr;
}

Status encode_weights(const Encoder& encoder, std::span<const float> weights, ThreadPool& pool,
                      std::span<std::byte> out) {
  const TensorGeometry& geometry = tensor_geometry(encoder.type);
  const size_t n_blocks = weights.size() / geometry.block_weights;
  check(n_blocks * geometry.block_weights == weights.size() &&
            n_blocks * geometry.block_bytes == out.size(),
        "encode_weights takes whole blocks and their exact place");
  const size_t turn = kWeightsPerTurn / geometry.block_weights;
  std::atomic<size_t> next{0};
  std::atomic<size_t> unfit{weights.size()};
  pool.run([&](size_t) {
    while (true) {
      const size_t begin = next.fetch_add(turn);
      if (begin >= n_blocks) return;
      const size_t n = std::min(turn, n_blocks - begin);
      const auto part = weights.subspan(begin * geometry.block_weights, n * geometry.block_weights);
      const size_t bad = first_unfit(encoder, part);
      if (bad < part.size()) {
        const size_t index = begin * geometry.block_weights + bad;
        size_t seen = unfit.load();
        while (index < seen && !unfit.compare_exchange_weak(seen, index)) {
        }
        continue;  // an earlier one may be in another thread's hands: the first is reported
      }
      encoder.encode(part, out.subspan(begin * geometry.block_bytes, n * geometry.block_bytes));
    }
  });
  const size_t index = unfit.load();
  if (index == weights.size()) return {};
  if (!std::isfinite(weights[index])) {
    return fail("weight {} is {}: expected a finite number", index, weights[index]);
  }
  return fail("weight {} is {}: {} holds magnitudes up to {}", index, weights[index], geometry.name,
              encoder.max_magnitude);
}

}  // namespace godwit::quant
