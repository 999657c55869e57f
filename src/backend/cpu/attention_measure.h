// How fast attention over a KV cache is here, set beside what memory gave in the same rounds: a
// round reads every byte of all layers' caches once with nothing else to do, then attends to all of
// them. Called by godwit_attention_bench and by what prints a bench of kernels; prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/tensor_type.h"
#include "os/cpu_features.h"

namespace godwit::cpu {

struct AttentionCase {
  size_t n_heads = 32;
  size_t n_kv_heads = 8;  // divides n_heads
  size_t head_dim = 64;
  size_t n_positions = 4096;  // that the last token sees
  size_t n_tokens = 1;        // 1: decode; more: prefill of the last n_tokens positions
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
  size_t block = 0;  // as AttentionArgs::block
  Isa isa = Isa::kGeneric;
  size_t n_threads = 1;
};

// Medians of the rounds.
struct AttentionSpeed {
  double us = 0;         // of one layer
  uint64_t bytes = 0;    // of keys and values that one layer reads, as they lie in memory
  double gbps = 0;       // bytes / us
  double read_gbps = 0;  // of the plain reads, by as many threads
  double share = 0;      // of the rounds' quotients of both: what else runs here slows both
  double gmacs = 0;      // G multiply-adds/s, of scores and values
};

// Well under a second for decode. Errors: a type, head width or grouping that attention does not
// take; memory. Aborts where a result differs from the generic kernels' (they are exact).
[[nodiscard]] Result<AttentionSpeed> measure_attention(const AttentionCase& c);

}  // namespace godwit::cpu
