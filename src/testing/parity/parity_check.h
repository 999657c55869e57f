// A backend against itself and against the oracle where tests of single steps do not look: whole
// models, groups of rows, states put back, types of KV, and long histories. Backends are given, so
// that tests can pass ones with a mistake planted. `godwit check parity` shows the findings.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "testing/finding.h"

namespace godwit::testing {

// KL(oracle || subject), in nats, of the next token's distribution from the same history. With KV
// of f32 the distances seen are 1e-10 to 2e-6, those of the mistakes that tests plant 5e-3 and
// more. Where KV is rounded, a number beside the middle between two may fall to either side, so as
// much is added as the type of KV itself moves the distributions.
inline constexpr double kDepthBound = 1e-5;
// A property that check_kv_types() tells.
inline constexpr const char* kMostDivergence = "most KL";

struct ParitySubject {
  const program::Program& program;
  backend::Backend& backend;      // the program loaded
  std::span<const TokenId> text;  // real tokens, at least 64
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
};

// The text in calls of single rows, and of others, up to all at once: the bits of the logits and of
// the state after the last token. Errors: memory.
[[nodiscard]] Status check_groups(const ParitySubject& subject, const FindingSink& sink);

// A history that was exported and put into another context: what follows has the same bits.
// Errors: memory.
[[nodiscard]] Status check_restored(const ParitySubject& subject, const FindingSink& sink);

// KL(f32 || type) of each type of KV that the backend has, mean and largest over the text's second
// half: told, not judged, but for numbers that are none. Errors: memory.
[[nodiscard]] Status check_kv_types(const ParitySubject& subject, const FindingSink& sink);

struct DepthCheck {
  uint64_t n_positions = 0;  // of history: the text's positions in a seeded order, for both
  size_t n_steps = 8;
  uint64_t seed = 1;
  double type_divergence = 0;  // the largest KL of the KV's type from f32
};

// Steps from a filled history on both, with the same tokens. Errors: memory; recurrent states,
// whose history cannot be made up.
[[nodiscard]] Status check_depth(const ParitySubject& subject, backend::Backend& oracle,
                                 const DepthCheck& check, const FindingSink& sink);

// In double; logits of any offset. NaN where either has one.
[[nodiscard]] double divergence(std::span<const float> base, std::span<const float> other);

}  // namespace godwit::testing
