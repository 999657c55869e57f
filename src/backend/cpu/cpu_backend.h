// The CPU executor of Programs: weights packed for the kernels of kernel_table.h, one pool of
// threads that walks the steps together with a barrier after each.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace godwit::cpu {

// Errors: GODWIT_ISA asks for an instruction set that is not there, GODWIT_ATTENTION_BLOCK for a
// length that is none (attention_block.h).
[[nodiscard]] Result<std::unique_ptr<backend::Backend>> make_cpu_backend(
    const backend::BackendSettings& settings);

}  // namespace godwit::cpu
