// Proves a schedule on the host, for one position: every slot of every weight and every cached
// position is eaten exactly once; every version of an activation is read by its own tag and not
// overwritten before all who read it are known to be done (vector clocks); the ring never blocks.
// Run by the tests for each shape of model, and on each schedule that they break on purpose.
#pragma once

#include <cstdint>

#include "backend/cuda/persistent/schedule.h"

namespace godwit::cuda::persistent {

[[nodiscard]] Status check_schedule(const Schedule& schedule, uint32_t position);

}  // namespace godwit::cuda::persistent
