#include "os/io_counters.h"

#include <fstream>
#include <string>

namespace godwit {

std::optional<IoCounters> io_counters() { return io_counters("/proc/self/io"); }

std::optional<IoCounters> io_counters(const std::filesystem::path& path) {
  std::ifstream file(path);
  IoCounters counters;
  int found = 0;
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "rchar:") {
      counters.read_bytes = value;
      ++found;
    } else if (name == "read_bytes:") {
      counters.device_bytes = value;
      ++found;
    }
  }
  return found == 2 ? std::optional(counters) : std::nullopt;
}

}  // namespace godwit
