// The types Godwit can write: one row per type, tying it to its function in encode_functions.h.
// The counterpart of formats.h; host only. To add one: write the function, add its row. Called by
// `godwit quantize` and the tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/tensor_type.h"
#include "os/thread_pool.h"

namespace godwit::quant {

struct Encoder {
  TensorType type;
  // Weights of larger magnitude have no block: scales and offsets are binary16.
  float max_magnitude;
  // Whole blocks of finite weights within the limit to `out`, their exact size.
  void (*encode)(std::span<const float> weights, std::span<std::byte> out);
};

// All encoders, ordered by type id.
[[nodiscard]] std::span<const Encoder> encoders();

// The row of a type, or nullptr when Godwit cannot write it.
[[nodiscard]] const Encoder* find_encoder(TensorType type);

// The first weight that the encoder must not be given, or the number of weights; and why.
[[nodiscard]] size_t first_unfit(const Encoder& encoder, std::span<const float> weights);
[[nodiscard]] std::string unfit_reason(const Encoder& encoder, float weight);

// Encodes blocks on all threads of the pool; the result does not depend on their number.
// Preconditions: whole blocks, all weights fit, `out` holds row_bytes(type, weights.size()) bytes.
void encode_weights(const Encoder& encoder, std::span<const float> weights, ThreadPool& pool,
                    std::span<std::byte> out);

}  // namespace godwit::quant
