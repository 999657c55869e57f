// A Program as text, one line per step: label, kind, operands with shapes and types, bytes.
#pragma once

#include <string>

#include "program/program.h"
#include "program/traffic.h"

namespace godwit::program {

[[nodiscard]] std::string print(const Program& program, const TrafficInput& input);

}  // namespace godwit::program
