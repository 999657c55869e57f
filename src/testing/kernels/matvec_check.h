// The mat-vec kernels against double precision at the edges of blocks, tiles and groups of tokens,
// and against themselves. Kernels are data: tests pass rows with a mistake planted.
// Properties, per kernel:
//   double    |y - double over the same activations| <= 2e-5 of sum |w x|
//   bits      the bits of the portable kernel (of `exact` rows)
//   threads   the same bits with the rows on 1 to 8 threads
//   rows      the same bits with fewer tokens in a call
// and per type, with the portable kernel's name: `rounding`, what rounding activations to two
// planes of eight bits does to y, as a share of sum |w x|, with its bound; per kind of activations
// and ISA: `bits` of the rounding itself.
#pragma once

#include <span>

#include "backend/cpu/kernel_table.h"
#include "testing/finding.h"
#include "testing/kernels/thread_counts.h"

namespace godwit::testing {

inline constexpr double kMatVecBound = 2e-5;  // of sum |w x|

struct MatVecCheck {
  std::span<const cpu::MatVecKernel> kernels;
  Isa ceiling = Isa::kGeneric;  // kernels above it are left out
  CheckExtent extent = CheckExtent::kQuick;
};

void check_matvec(const MatVecCheck& check, const ThreadCounts& threads, const FindingSink& sink);

}  // namespace godwit::testing
