// Tells models apart that must not share state: a state belongs to the weights, the shape and the
// arithmetic that made it.
#pragma once

#include "base/checksum.h"
#include "gguf/file.h"
#include "program/program.h"

namespace godwit::engine {

// Raise it whenever a change of arithmetic (docs/NUMERICS.md) changes a bit of any state.
inline constexpr uint64_t kNumericsVersion = 1;

// Metadata, tensor directory, the first bytes of every tensor (two trainings of one shape differ
// nowhere else; whole files would take minutes), the angles of RoPE, which depend on the context
// asked for, and kNumericsVersion.
[[nodiscard]] Digest fingerprint_of(const gguf::File& file, const program::Program& program);

}  // namespace godwit::engine
