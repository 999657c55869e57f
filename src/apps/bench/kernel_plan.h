// What `bench kernel` measures: the small grammars of its flags, and the list of cases they make.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/attention_measure.h"
#include "backend/cpu/matvec_measure.h"
#include "base/result.h"
#include "base/tensor_type.h"
#include "os/cpu_features.h"

namespace godwit::apps {

struct MatVecShape {
  size_t rows = 0;
  size_t cols = 0;

  friend bool operator==(const MatVecShape&, const MatVecShape&) = default;
};

struct AttentionHeads {
  size_t n_heads = 0;
  size_t n_kv_heads = 0;
  size_t head_dim = 0;

  friend bool operator==(const AttentionHeads&, const AttentionHeads&) = default;
};

struct KvPair {
  TensorType k = TensorType::kF16;
  TensorType v = TensorType::kF16;

  friend bool operator==(const KvPair&, const KvPair&) = default;
};

// "q4_0, q4_1": the types that mat-vec kernels have, as flags spell them.
[[nodiscard]] std::string matvec_type_names();
// "8192x2048". Errors: anything else, a side of 0 or beyond all reason.
[[nodiscard]] Result<MatVecShape> parse_matvec_shape(std::string_view text);
// "32x8x64". Errors likewise; heads that do not share the KV heads evenly.
[[nodiscard]] Result<AttentionHeads> parse_attention_heads(std::string_view text);
// "q8_0/f16", or "f16" for both. Errors: a type that attention does not take.
[[nodiscard]] Result<KvPair> parse_kv_pair(std::string_view text);
// "avx2". Errors: another name, or more than this processor has.
[[nodiscard]] Result<Isa> parse_isa(std::string_view text);

struct KernelLists {
  std::vector<std::string> types = {"q4_k", "q6_k", "q8_0", "bf16"};  // "all": every one
  // Of Llama 3.2 1B and Llama 3 8B; last the output matrix of Qwen2.5 1.5B.
  std::vector<std::string> shapes = {"2048x2048",  "8192x2048",  "2048x8192",
                                     "14336x4096", "4096x14336", "151936x1536"};
  std::vector<std::string> isas;     // none: what the executor would choose
  std::vector<size_t> tokens = {1};  // of one product
  std::vector<size_t> planes;        // none: as the executor multiplies
  std::vector<std::string> heads = {"32x8x64"};
  std::vector<std::string> kv_pairs;  // none: kv_pairs()
  std::vector<size_t> positions = {1024, 4096, 16384, 65536, 262144};
  size_t n_threads = 0;  // 0: one per available core
  size_t n_rounds = 7;
};

// Of the pairs that matter those that attention takes: each type with itself, and mixtures.
[[nodiscard]] std::vector<KvPair> kv_pairs();

// For each type, its kernels, shapes and numbers of tokens, in that order. A kernel's case is left
// out where it has fewer planes than asked for. Errors: a value that none of the above takes;
// nothing left to measure; a case that takes more memory than there is.
[[nodiscard]] Result<std::vector<cpu::MatVecCase>> plan_matvecs(const KernelLists& lists);
[[nodiscard]] Result<std::vector<cpu::AttentionCase>> plan_attention(const KernelLists& lists);

}  // namespace godwit::apps
