// The backends by name. To add one: write backend/<name>/, add its row in registry.cpp.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace godwit::backend {

// Errors: an unknown name (the known ones are listed), or what the backend needs and lacks.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(std::string_view name,
                                                            const BackendSettings& settings);
[[nodiscard]] std::vector<std::string_view> backend_names();

}  // namespace godwit::backend
