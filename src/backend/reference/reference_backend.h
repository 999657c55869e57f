// The oracle: one plain function per step kind, in double precision, in the obvious order. It
// decodes weights with quant/<type>.h, keeps activations and KV as doubles (KV rounded to the
// context's type, if that is narrower than F32) and never approximates. Slow, and never deleted.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace godwit::reference {

[[nodiscard]] Result<std::unique_ptr<backend::Backend>> make_reference_backend(
    const backend::BackendSettings& settings);

}  // namespace godwit::reference
