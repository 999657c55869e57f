// What this process has read so far, by the kernel's account. Two numbers, because a read that the
// page cache answers moves bytes but no disk. Callers take differences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace godwit {

struct IoCounters {
  uint64_t read_bytes = 0;    // asked for by read(2) and its like, wherever they came from
  uint64_t device_bytes = 0;  // that storage had to deliver, for reads and for mapped pages

  friend bool operator==(const IoCounters&, const IoCounters&) = default;
};

// nullopt where the system does not tell.
[[nodiscard]] std::optional<IoCounters> io_counters();
// The same from another file than /proc/self/io, for tests.
[[nodiscard]] std::optional<IoCounters> io_counters(const std::filesystem::path& path);

}  // namespace godwit
