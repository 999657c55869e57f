// Proves before anything is launched that a Program makes sense: ids exist, shapes fit weights and
// buffers, each read has an earlier write, each KV is attended by one step, heads divide evenly.
#pragma once

#include "base/result.h"
#include "program/program.h"

namespace godwit::program {

// Errors name the step and the operand.
[[nodiscard]] Status validate(const Program& program);

}  // namespace godwit::program
