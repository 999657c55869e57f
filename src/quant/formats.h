// The types Godwit computes with: one row per type, tying the file's type id to the functions of
// its header quant/<type>.h. To add a type: write its header, add its block to blocks.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "base/tensor_type.h"

namespace godwit::quant {

struct Format {
  TensorType type;
  // Decodes `n_blocks` blocks at `src` (file layout, no alignment needed) to f32.
  void (*decode)(const std::byte* src, size_t n_blocks, float* out);
  // One block of random bits whose weights have mean about 0 and the given standard deviation.
  void (*random_block)(RandomStream& random, float deviation, std::byte* out);
};

// All formats, ordered by type id.
[[nodiscard]] std::span<const Format> formats();

// The row of a type, or nullptr when Godwit does not compute with it.
[[nodiscard]] const Format* find_format(TensorType type);

// Decodes one row of out.size() weights. Preconditions: the type has a format; out.size() is a
// multiple of its block; src holds row_bytes(type, out.size()) bytes.
void decode_row(TensorType type, std::span<const std::byte> src, std::span<float> out);

}  // namespace godwit::quant
