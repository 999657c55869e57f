// One context's use of the persistent kernel: its table on the card with the pointers filled in,
// its words, and the count of tokens. executor.cpp and megakernel_bench.cpp are its callers; it
// owns device memory and knows nothing of Backend.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/persistent/kernel.h"
#include "backend/cuda/persistent/schedule.h"

namespace godwit::cuda::persistent {

// A matrix as it lies on the card before it is repacked.
struct SourceMatrix {
  const std::byte* data = nullptr;  // [rows, stride]
  TensorType type = TensorType::kF32;
  uint64_t rows = 0;
  uint64_t stride = 0;  // elements
};

// Where the Program's weights lie: matrices for repacking and the embedding, vectors in f32.
struct WeightSource {
  std::function<SourceMatrix(const program::WeightRef&)> matrix;
  std::function<const float*(const program::WeightRef&)> vector;
};

// The repacked weights of a schedule; shared by its contexts.
class PackedWeights {
 public:
  [[nodiscard]] static uint64_t need(const Schedule& schedule);
  [[nodiscard]] static Result<PackedWeights> pack(const Schedule& schedule,
                                                  const WeightSource& source, cudaStream_t stream);

  // Phases with the pointers to weights, norms and biases; those of a context are still empty.
  [[nodiscard]] std::span<const Phase> phases() const { return phases_; }
  [[nodiscard]] const EmbedArgs& embed() const { return embed_; }

 private:
  DeviceMemory memory_;
  std::vector<Phase> phases_;
  EmbedArgs embed_;
};

struct KvPlace {
  std::byte* data = nullptr;  // a layer's cache, operand order
  uint64_t head_bytes = 0;
};

struct RunnerSettings {
  const Schedule& schedule;      // outlives the runner
  const PackedWeights& weights;  // likewise
  TensorType kv_type = TensorType::kBF16;
  std::function<KvPlace(program::KvRef)> kv;
  std::function<const float*(program::RopeRef)> rope;  // pairs (cos, sin)
  float* logits = nullptr;
  Tuning tuning;
};

struct Token {
  int32_t id = 0;
  uint32_t position = 0;
};

class TokenRunner {
 public:
  [[nodiscard]] static Result<TokenRunner> create(const RunnerSettings& settings,
                                                  cudaStream_t stream);

  // Enqueues a token; does not wait.
  [[nodiscard]] Status run(Token token, cudaStream_t stream);
  // The first `n_phases` phases only, for looking at what they leave; words are set anew before
  // the next token.
  [[nodiscard]] Status run_phases(Token token, uint32_t n_phases, cudaStream_t stream);
  // After the stream was waited for: empty, or what the watchdog recorded, once.
  [[nodiscard]] Status check();

  [[nodiscard]] const uint32_t* words() const { return words_.as<uint32_t>(); }
  // Id of the largest logit of the last token, on the card.
  [[nodiscard]] const int32_t* best_token() const { return args_.best_token; }
  [[nodiscard]] TokenArgs& args() { return args_; }

 private:
  [[nodiscard]] Status begin_anew(cudaStream_t stream);

  const Schedule* schedule_ = nullptr;
  KernelChoice choice_;
  TokenArgs args_;
  DeviceMemory words_;
  DeviceMemory table_;
  PinnedMemory error_;
  bool anew_ = true;
};

}  // namespace godwit::cuda::persistent
