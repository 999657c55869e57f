// A model of random weights on the card, for megakernel_bench: every element is a function of its
// index, so that the host knows it without a copy.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/kv_layout.h"
#include "backend/cuda/persistent/bench/program.h"
#include "backend/cuda/persistent/bench/values.h"
#include "backend/cuda/persistent/token_runner.h"
#include "program/program.h"

namespace godwit::cuda::persistent {

class BenchModel {
 public:
  [[nodiscard]] static Result<BenchModel> create(const BenchSpec& spec, uint64_t capacity,
                                                 const DeviceFacts& device, cudaStream_t stream);

  [[nodiscard]] Result<TokenRunner> runner(const Tuning& tuning, cudaStream_t stream) const;

  [[nodiscard]] const BenchSpec& spec() const { return spec_; }
  [[nodiscard]] const program::Program& program() const { return *program_; }
  [[nodiscard]] const Schedule& schedule() const { return *schedule_; }
  [[nodiscard]] const KvLayout& layout() const { return layout_; }
  [[nodiscard]] std::byte* kv(uint32_t layer) const {
    return kv_.data() + layer * layout_.layer_bytes();
  }
  [[nodiscard]] const float* logits() const { return logits_.as<float>(); }
  [[nodiscard]] const std::vector<float>& rope() const { return rope_host_; }
  // Fills a layer's cache from `position` on, or all of it, with random values or with NaN.
  enum class Fill : uint8_t { kRandom, kNan };
  [[nodiscard]] Status fill_kv(Fill fill, uint64_t from, cudaStream_t stream) const;

 private:
  BenchSpec spec_;
  std::unique_ptr<program::Program> program_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<PackedWeights> packed_;
  DeviceMemory matrices_;
  std::vector<uint64_t> offsets_;  // of each weight
  DeviceMemory kv_;
  DeviceMemory rope_;
  std::vector<float> rope_host_;
  DeviceMemory logits_;
  KvLayout layout_;
};

}  // namespace godwit::cuda::persistent
