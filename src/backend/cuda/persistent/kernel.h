// The persistent kernel as the host sees it: arguments, the record its watchdog leaves, and one
// function that launches a token. kernel.cuh is the kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/persistent/phase.h"
#include "base/tensor_type.h"

namespace godwit::cuda::persistent {

enum class Awaited : uint32_t {
  kCopyLanded,
  kSlotFree,
  kWindow,
  kActivation,
  kQuery,
  kPartials,
  kBest,
};

struct ErrorRecord {
  uint32_t set = 0;
  uint32_t phase = 0;
  uint32_t cta = 0;
  uint32_t warp = 0;
  Awaited awaited = Awaited::kCopyLanded;
};

// How far the loader runs ahead, in copies of a slot, and how often waits ask. GPU.md's numbers,
// tuned on an H200 (docs/MEGAKERNEL.md has the table).
struct Tuning {
  uint32_t window = 4;       // copies in flight inside a phase; odd slots may have `half` more
  uint32_t near_window = 2;  // when fewer than `near_slots` slots of the phase are left
  uint32_t near_slots = 6;
  uint32_t half = 1;
  uint32_t last_window = 6;  // in the last phase, which nobody waits behind
  uint32_t pause_ns = 80;    // between two looks at an activation
  uint32_t evict_first = 1;  // 1: tell the L2 that weights and KV are read once
  uint32_t keep = 1;         // 1: and to keep those of phases marked so (Phase::keep)
};

struct EmbedArgs {
  const void* table = nullptr;  // row-major, `type`
  TensorType type = TensorType::kF32;
  uint32_t dim = 0;
  uint64_t stride = 0;  // elements
  float scale = 1.0f;
  EdgeShape out;
};

// Stamps of one CTA, clock64 at: the phase entered, its input there, its slots done, and for
// attention its partial published.
inline constexpr uint32_t kStampsPerPhase = 4;

struct TokenArgs {
  const Phase* phases = nullptr;
  const Shape* shapes = nullptr;
  uint32_t n_phases = 0;
  uint32_t n_shapes = 0;
  SharedPlan shared;
  Tuning tuning;
  EmbedArgs embed;
  uint32_t* words = nullptr;  // [kReplicas, n_words]
  uint32_t n_words = 0;
  float* logits = nullptr;
  unsigned long long* best = nullptr;   // [n_ctas]
  int32_t* best_token = nullptr;        // the row of the largest logit, the lowest of equals
  const int32_t* token_from = nullptr;  // the token's id on the card; nullptr: `token`
  int32_t token = 0;
  uint32_t position = 0;
  uint32_t epoch = 0;  // tokens since the words were set to 0xff
  long long patience_ns = 2'000'000'000;
  ErrorRecord* error = nullptr;
  long long* stamps = nullptr;  // [n_phases + 1, kStampsPerPhase]; nullptr: none are taken
  uint32_t stamped_cta = 0;
};

struct KernelChoice {
  TensorType weight_type = TensorType::kBF16;
  TensorType kv_type = TensorType::kBF16;
  uint32_t head_dim = 64;
  uint32_t stage_chunks = 2;  // the most of any phase
  uint32_t n_ctas = 0;
};

// Enqueues one token. Every CTA must be resident at once, hence a cooperative launch.
[[nodiscard]] cudaError_t launch_token(const KernelChoice& choice, const TokenArgs& args,
                                       cudaStream_t stream);

}  // namespace godwit::cuda::persistent
