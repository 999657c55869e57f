// A file of a model with recurrent layers, experts and, where asked for, the head that predicts
// further tokens, which tests of the upper rooms load in milliseconds: qwen3next with three layers
// of Gated DeltaNet and one of attention, random F32 matrices. Its layers add so little to the
// residual stream that the next token follows mostly from the last one: greedy text runs in
// circles, and the head, which sees the last token too, is right more often than not.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "testing/models/tiny_vocabulary.h"

namespace godwit::testing {

enum class TinyHead : uint8_t { kNone, kPredictsFurther };

struct TinyHybrid {
  TinyHead head = TinyHead::kNone;
  uint64_t seed = 5;
  uint64_t n_positions = 512;
};

[[nodiscard]] Status write_tiny_hybrid(const std::filesystem::path& path, const TinyHybrid& model);

}  // namespace godwit::testing
