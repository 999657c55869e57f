// Finds the routed experts of a program in its file, so that a backend can read one at a time
// (experts/source.h). Called by Engine::load and by commands that plan without loading.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "experts/source.h"
#include "gguf/file.h"
#include "program/program.h"

namespace godwit::engine {

// Layers as backend::BackendSettings says: one per step that multiplies with experts. A step whose
// matrices are not whole tensors of the file becomes a layer without experts, which stay resident.
// Errors: as ExpertSource::create. `file` must outlive the result.
[[nodiscard]] Result<experts::ExpertSource> find_experts(const gguf::File& file,
                                                         const program::Program& program);

// Bytes of all experts in the file.
[[nodiscard]] uint64_t expert_file_bytes(const experts::ExpertSource& source);

}  // namespace godwit::engine
