// An implementation of a graded model that shares nothing with the backends: one plain loop per
// result, in f32 (the "twin" T) or in double (D), on the GPU or, for tests, on the host. Softmax is
// in double in both, RoPE from double angles, keys and values are written as bf16. Slow and plain;
// with a mutant it makes that mistake. Owns the weights and one cache, which T and D take turns in.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grader/graded_model.h"
#include "grader/mutant.h"

namespace godwit::grader {

enum class TwinPrecision : uint8_t { kFloat, kDouble };

struct TwinStep {
  TokenId token;
  uint64_t position = 0;
  TwinPrecision precision = TwinPrecision::kFloat;
  Mutant mutant = Mutant::kNone;
};

// What a Program step left in a buffer, by the step's label and the buffer's name.
using TwinTrace = std::function<void(std::string_view step, std::string_view buffer,
                                     std::span<const double> values)>;

class Twin {
 public:
  virtual ~Twin() = default;

  // Cached positions [0, capacity) as the model's rule says.
  virtual void fill_cache() = 0;
  // Positions [begin, begin + n) in the layout of backend/state.h, bf16.
  virtual void read_cache(uint64_t begin, std::span<uint16_t> out) const = 0;
  virtual void write_cache(uint64_t begin, std::span<const uint16_t> in) = 0;
  // Writes the position's row and computes its logits [n_vocab]. An empty trace costs nothing.
  virtual void step(const TwinStep& step, std::span<float> logits, const TwinTrace& trace) = 0;
  // A tensor of the model in file layout: bf16, or f32 for vectors.
  [[nodiscard]] virtual std::vector<std::byte> tensor_bytes(uint32_t tensor) const = 0;
};

// `model` must outlive the twin. make_twin.h has the ones that users call.
[[nodiscard]] std::unique_ptr<Twin> make_host_twin(const GradedModel& model, uint64_t capacity);

// What twin_device.cu offers, without the headers that nvcc cannot read.
struct DeviceRoom {
  uint64_t free_bytes = 0;
  std::string problem;  // why there is no device
};
[[nodiscard]] DeviceRoom device_room();
[[nodiscard]] uint64_t device_twin_bytes(const GradedModel& model, uint64_t capacity);
[[nodiscard]] std::unique_ptr<Twin> make_unchecked_device_twin(const GradedModel& model,
                                                               uint64_t capacity);

}  // namespace godwit::grader
