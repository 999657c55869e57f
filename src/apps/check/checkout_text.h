// Real text that every checkout has: its documents, then its sources. What `check needles` and
// `check parity` read where nobody gives a text.
#pragma once

#include <string>

#include "base/result.h"

namespace godwit::apps {

// In the order of the files' names. Errors: no checkout where this program was built from.
[[nodiscard]] Result<std::string> checkout_text();

}  // namespace godwit::apps
