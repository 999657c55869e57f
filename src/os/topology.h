// How many cores this process may use: its affinity mask, lowered by a control group's CPU quota.
#pragma once

#include <cstddef>

namespace godwit {

[[nodiscard]] size_t available_cores();

}  // namespace godwit
