// What a refusal of the Hub means to a user.
#pragma once

#include <string>

#include "hub/settings.h"
#include "net/retry.h"

namespace godwit::hub {

// One line for a request about `repo` that failed: what is wrong, and what would help.
[[nodiscard]] Error explain(const net::Failure& failure, const HubSettings& settings,
                            const std::string& repo);

}  // namespace godwit::hub
