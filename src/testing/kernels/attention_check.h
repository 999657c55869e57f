// Attention against double precision, against two tests whose answer is a formula, and against
// itself. The ways to run it are data: tests pass ones with a mistake planted.
// Properties, per instruction set and KV types:
//   double    absolute error <= 2e-6, and what rounding in blocks adds (attention_problem.h), at
//             lengths around tiles, blocks and beyond
//   counting  keys are 0 and values one-hot by position: every output is a share of the history.
//             Sees one position lost or counted twice
//   needle    one score drowns the others: every output is that position's value. Tried at both
//             sides of every block edge, first, last, and in the newest
//   bits      the bits of the portable kernels
//   threads   the same bits on 1 to 8 threads
//   rows      the same bits for one token and for several in a call
#pragma once

#include <span>

#include "testing/finding.h"
#include "testing/kernels/attention_problem.h"
#include "testing/kernels/thread_counts.h"

namespace godwit::testing {

// As the executor runs it, on every instruction set up to `ceiling`.
[[nodiscard]] std::vector<AttentionSubject> attention_subjects(Isa ceiling);

struct AttentionCheck {
  std::span<const AttentionSubject> subjects;
  TensorType k_type = TensorType::kF32;
  TensorType v_type = TensorType::kF32;
  CheckExtent extent = CheckExtent::kQuick;
};

void check_attention(const AttentionCheck& check, const ThreadCounts& threads,
                     const FindingSink& sink);

}  // namespace godwit::testing
