// The tensor types of the GGUF format: id in the file, name, and block geometry, for every type
// that has an id, whether or not Godwit computes with it (quant/formats.h says which it does).
// Source: the GGUF specification and the `gguf` Python package's GGML_QUANT_SIZES; for Q2_0, which
// the package does not know, llama.cpp's ggml.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace godwit {

enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct TensorGeometry {
  TensorType type;
  std::string_view name;
  uint32_t block_weights;  // weights in one block; rows are whole blocks
  uint32_t block_bytes;    // bytes of one block in the file
};

inline constexpr auto kTensorGeometries = std::to_array<TensorGeometry>({
    {TensorType::kF32, "F32", 1, 4},
    {TensorType::kF16, "F16", 1, 2},
    {TensorType::kQ4_0, "Q4_0", 32, 18},
    {TensorType::kQ4_1, "Q4_1", 32, 20},
    {TensorType::kQ5_0, "Q5_0", 32, 22},
    {TensorType::kQ5_1, "Q5_1", 32, 24},
    {TensorType::kQ8_0, "Q8_0", 32, 34},
    {TensorType::kQ8_1, "Q8_1", 32, 36},
    {TensorType::kQ2_K, "Q2_K", 256, 84},
    {TensorType::kQ3_K, "Q3_K", 256, 110},
    {TensorType::kQ4_K, "Q4_K", 256, 144},
    {TensorType::kQ5_K, "Q5_K", 256, 176},
    {TensorType::kQ6_K, "Q6_K", 256, 210},
    {TensorType::kQ8_K, "Q8_K", 256, 292},
    {TensorType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    {TensorType::kIQ2_XS, "IQ2_XS", 256, 74},
    {TensorType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    {TensorType::kIQ1_S, "IQ1_S", 256, 50},
    {TensorType::kIQ4_NL, "IQ4_NL", 32, 18},
    {TensorType::kIQ3_S, "IQ3_S", 256, 110},
    {TensorType::kIQ2_S, "IQ2_S", 256, 82},
    {TensorType::kIQ4_XS, "IQ4_XS", 256, 136},
    {TensorType::kI8, "I8", 1, 1},
    {TensorType::kI16, "I16", 1, 2},
    {TensorType::kI32, "I32", 1, 4},
    {TensorType::kI64, "I64", 1, 8},
    {TensorType::kF64, "F64", 1, 8},
    {TensorType::kIQ1_M, "IQ1_M", 256, 56},
    {TensorType::kBF16, "BF16", 1, 2},
    {TensorType::kTQ1_0, "TQ1_0", 256, 54},
    {TensorType::kTQ2_0, "TQ2_0", 256, 66},
    {TensorType::kMXFP4, "MXFP4", 32, 17},
    {TensorType::kNVFP4, "NVFP4", 64, 36},
    {TensorType::kQ1_0, "Q1_0", 128, 18},
    {TensorType::kQ2_0, "Q2_0", 64, 18},
});

// The geometry of the type with this id in a file, or nullptr for an id nobody has defined.
[[nodiscard]] constexpr const TensorGeometry* find_tensor_geometry(uint32_t file_id) {
  for (const TensorGeometry& geometry : kTensorGeometries) {
    if (static_cast<uint32_t>(geometry.type) == file_id) return &geometry;
  }
  return nullptr;
}

// The type whose name this is ("Q4_K", in any case), or nullptr.
[[nodiscard]] constexpr const TensorGeometry* find_tensor_geometry(std::string_view name) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  for (const TensorGeometry& geometry : kTensorGeometries) {
    if (geometry.name.size() != name.size()) continue;
    bool same = true;
    for (size_t i = 0; i < name.size(); ++i) same = same && upper(name[i]) == geometry.name[i];
    if (same) return &geometry;
  }
  return nullptr;
}

[[nodiscard]] constexpr const TensorGeometry& tensor_geometry(TensorType type) {
  return *find_tensor_geometry(static_cast<uint32_t>(type));
}

[[nodiscard]] constexpr std::string_view tensor_type_name(TensorType type) {
  return tensor_geometry(type).name;
}

// Bytes of one row of `cols` weights; cols is a multiple of the type's block.
[[nodiscard]] constexpr uint64_t row_bytes(TensorType type, uint64_t cols) {
  const TensorGeometry& geometry = tensor_geometry(type);
  return cols / geometry.block_weights * geometry.block_bytes;
}

}  // namespace godwit
