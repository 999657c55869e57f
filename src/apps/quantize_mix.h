// The file types of `godwit quantize`, named and numbered as in llama.cpp, and which type each
// tensor gets in them: most of a file has its one type, and the tensors that hurt most when they
// are coarse get a finer one. Rules and names follow llama.cpp's quantize, so that files come out
// alike; nothing here reads weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"

namespace godwit::apps {

// Values are the file's general.file_type.
enum class Mix : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 7,
  kQ5_0 = 8,
  kQ5_1 = 9,
  kQ2_K = 10,
  kQ3_K_S = 11,
  kQ3_K_M = 12,
  kQ3_K_L = 13,
  kQ4_K_S = 14,
  kQ4_K_M = 15,
  kQ5_K_S = 16,
  kQ5_K_M = 17,
  kQ6_K = 18,
  kIQ2_XXS = 19,
  kIQ2_XS = 20,
  kQ2_K_S = 21,
  kIQ3_XS = 22,
  kIQ3_XXS = 23,
  kIQ4_NL = 25,
  kIQ3_S = 26,
  kIQ3_M = 27,
  kIQ2_S = 28,
  kIQ2_M = 29,
  kIQ4_XS = 30,
  kBF16 = 32,
};

struct FileType {
  std::string_view name;
  Mix mix;
  TensorType type;  // of most tensors
};

[[nodiscard]] std::span<const FileType> file_types();
// By name in any case, by alias ("Q4_K" is Q4_K_M) or by number; nullptr for anything else.
[[nodiscard]] const FileType* find_file_type(std::string_view text);
[[nodiscard]] std::string file_type_names();

// What the rules want to know of a model.
struct MixFacts {
  std::string architecture;
  size_t n_layers = 0;
  size_t n_heads = 0;
  size_t n_kv_heads = 0;
  size_t n_experts = 0;
};

// Hands out types to the matrices of one file, in the order of their layers: some rules count.
class MixRules {
 public:
  MixRules(const FileType& file_type, MixFacts facts, std::span<const std::string_view> names);

  // The type of the next matrix.
  [[nodiscard]] TensorType next(std::string_view name, uint64_t cols);

 private:
  [[nodiscard]] TensorType output_type(uint64_t cols) const;
  [[nodiscard]] TensorType embedding_type() const;
  [[nodiscard]] TensorType low_bit_type(std::string_view name);
  [[nodiscard]] TensorType attention_v_type();
  [[nodiscard]] TensorType attention_qk_type(bool is_key) const;
  [[nodiscard]] TensorType attention_output_type() const;
  [[nodiscard]] TensorType down_type(std::string_view name);
  [[nodiscard]] TensorType gate_up_type(std::string_view name, size_t counter) const;
  [[nodiscard]] size_t layer_of(std::string_view name, size_t counter) const;

  FileType file_type_;
  MixFacts facts_;
  bool tied_ = true;          // no output matrix of its own
  size_t n_attention_v_ = 0;  // in the file
  size_t attention_v_ = 0;    // seen so far, as are the others
  size_t down_ = 0;
  size_t gate_ = 0;
  size_t up_ = 0;
};

// Whether a tensor is one of those that are quantised at all: matrices named "...weight" that are
// neither norms nor small enough to be left alone.
[[nodiscard]] bool is_quantised_tensor(std::string_view name, std::span<const uint64_t> dims);

// What stands in for a type whose blocks do not divide rows of `cols` weights: a type of blocks of
// 32 that is at least as fine, or F16.
[[nodiscard]] TensorType fitting_type(TensorType type, uint64_t cols);

}  // namespace godwit::apps
