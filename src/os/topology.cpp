#include "os/topology.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>

namespace godwit {
namespace {

// cgroup v2: "max 100000" or "150000 100000"; a container sees its own group at the root.
size_t quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return SIZE_MAX;
  char* end = nullptr;
  const double value = std::strtod(quota.c_str(), &end);
  if (end == quota.c_str() || value <= 0) return SIZE_MAX;
  return static_cast<size_t>(std::max(1.0, std::ceil(value / period)));
}

}  // namespace

size_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  size_t cores = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    cores = static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
  }
  return std::min(cores, quota_cores());
}

}  // namespace godwit
