// How many multiplications with additions a token of a prompt takes: what prompts wait for, as
// decode waits for bytes (program/traffic.h).
#pragma once

#include <cstdint>

#include "program/program.h"

namespace godwit::apps {

// Of the main list for one row at `position` (positions seen: that and those before). Matrices with
// vectors, and attention's two products; norms, activations and recurrences are not counted, nor
// the output matrix, which a prompt multiplies once.
[[nodiscard]] uint64_t multiply_adds(const program::Program& program, uint64_t position);

}  // namespace godwit::apps
