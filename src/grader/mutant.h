// The mistakes a decode kernel must not be able to make unseen: each can be planted in the twin,
// and each must then leave the tolerance or fail the test that is named for it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace godwit::grader {

enum class Mutant : uint8_t {
  kNone,
  kSkipLayer,
  kNoRope,
  kNoSilu,
  kHalfHistory,
  kLast128,
  kDropSplit,
  kStaleRow,
  kWrongGqa,
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
};

inline constexpr std::array kMutants = {
    MutantRow{Mutant::kSkipLayer, "skip_layer"},  // the middle one
    MutantRow{Mutant::kNoRope, "no_rope"},
    MutantRow{Mutant::kNoSilu, "no_silu"},            // gate * up
    MutantRow{Mutant::kHalfHistory, "half_history"},  // the older half unseen
    MutantRow{Mutant::kLast128, "last_128"},
    MutantRow{Mutant::kDropSplit, "drop_split"},    // one of 132 equal pieces of a layer's cache
    MutantRow{Mutant::kStaleRow, "stale_kv_row"},   // the row of the step before is appended
    MutantRow{Mutant::kWrongGqa, "wrong_gqa_map"},  // head h with KV head h mod n
};

[[nodiscard]] constexpr std::string_view mutant_name(Mutant mutant) {
  for (const MutantRow& row : kMutants) {
    if (row.mutant == mutant) return row.name;
  }
  return "none";
}

}  // namespace godwit::grader
