#include "backend/registry.h"

#include <fmt/ranges.h>

#include <array>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/reference/reference_backend.h"

namespace godwit::backend {
namespace {

struct Row {
  std::string_view name;
  Result<std::unique_ptr<Backend>> (*make)(const BackendSettings& settings);
};

constexpr std::array kBackends = {
    Row{"cpu", cpu::make_cpu_backend},
    Row{"cuda", cuda::make_cuda_backend},
    Row{"reference", reference::make_reference_backend},
};

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kBackends) names.push_back(row.name);
  return names;
}

Result<std::unique_ptr<Backend>> make_backend(std::string_view name,
                                              const BackendSettings& settings) {
  for (const Row& row : kBackends) {
    if (row.name == name) return row.make(settings);
  }
  return fail("backend '{}' is not known; there are {}", name, fmt::join(backend_names(), ", "));
}

}  // namespace godwit::backend
