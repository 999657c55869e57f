// The small element-wise operations between mat-vecs, one set of functions per instruction set.
// All are `exact`: the same bits on every ISA, because sixteen lanes in a fixed order, explicit fma
// and one polynomial for exp define each of them (vector_body.h). Any n, any alignment. They know
// nothing of steps or threads; the executor calls them on its share of a row.
#pragma once

#include "backend/cpu/vector_table.h"
#include "os/cpu_features.h"

namespace godwit::cpu {

// The set for the best instruction set up to `isa`.
[[nodiscard]] const VectorOps& vector_ops(Isa isa);

}  // namespace godwit::cpu
