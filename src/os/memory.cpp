#include "os/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace godwit {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kHugeFromBytes = size_t{4} << 20;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> leading_number(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

// The number that follows `key` at the start of a line of a "key value" file.
std::optional<uint64_t> read_field(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return leading_number(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

// A file that is one number. "max" and a missing file are nullopt alike: no limit is known.
std::optional<uint64_t> read_number(const std::filesystem::path& path) {
  return read_field(path, "");
}

// What the two versions of control groups call the same things.
struct GroupFiles {
  std::string_view limit;
  std::string_view used;
  std::string_view reclaimable;  // key in memory.stat
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file "};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file "};

uint64_t left_in_group(const std::filesystem::path& group, const GroupFiles& files) {
  const std::optional<uint64_t> limit = read_number(group / files.limit);
  if (!limit) return kUnlimited;
  const uint64_t used = read_number(group / files.used).value_or(0);
  // File pages not used lately count as used until the kernel needs them.
  const uint64_t reclaimable = read_field(group / "memory.stat", files.reclaimable).value_or(0);
  const uint64_t held = used - std::min(used, reclaimable);
  return *limit - std::min(*limit, held);
}

// The least that is left in the group and in each of its parents, up to the mount point.
uint64_t left_in_groups_above(const std::filesystem::path& mount, std::string_view group,
                              const GroupFiles& files) {
  uint64_t left = left_in_group(mount, files);
  std::filesystem::path path = mount;
  for (const std::filesystem::path& part : std::filesystem::path(group).relative_path()) {
    path /= part;
    left = std::min(left, left_in_group(path, files));
  }
  return left;
}

// Lines of /proc/self/cgroup are "id:controllers:path"; version 2 has no controllers. Inside a
// container the path may not exist below the mount point, which is then the container's own group.
uint64_t left_in_control_groups(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  uint64_t left = kUnlimited;
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string_view group = std::string_view(line).substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left, left_in_groups_above(mount, group, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups_above(mount / "memory", group, kVersion1));
    }
  }
  return left;
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::create(size_t size, size_t alignment) {
  check(is_power_of_two(alignment) && alignment >= 64 && alignment <= kHugePageBytes,
        "a buffer's alignment is a power of two from 64 to 2 MiB");
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  const bool huge = size >= kHugeFromBytes;
  if (huge) alignment = kHugePageBytes;
  // mmap aligns to pages only; the surplus is never touched and so costs no memory.
  const std::optional<uint64_t> wanted =
      checked_add(size, alignment > kPageBytes ? alignment : kPageBytes - 1);
  if (!wanted) return fail("memory: cannot allocate {} bytes: too many to address", size);
  void* const mapping = mmap(nullptr, *wanted, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return fail("memory: cannot allocate {} bytes: {}", size, std::strerror(errno));
  }
  buffer.mapping_ = mapping;
  buffer.mapping_bytes_ = *wanted;
  const size_t misaligned = reinterpret_cast<uintptr_t>(mapping) & (alignment - 1);
  buffer.data_ = static_cast<std::byte*>(mapping) + (misaligned == 0 ? 0 : alignment - misaligned);
  buffer.size_ = size;
  // Advice only: a system without huge pages serves small ones.
  if (huge) (void)madvise(buffer.data_, size, MADV_HUGEPAGE);
  return buffer;
}

Status AlignedBuffer::lock() {
  if (size_ == 0 || mlock(data_, size_) == 0) return {};
  const std::string why = std::strerror(errno);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return fail("memory: cannot lock {} bytes: {}", size_, why);
  }
  return fail("memory: cannot lock {} bytes: {}; all that may be locked is {} bytes (ulimit -l)",
              size_, why, limit.rlim_cur);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (mapping_ != nullptr) (void)munmap(mapping_, mapping_bytes_);
}

uint64_t available_memory_bytes() { return available_memory_bytes("/"); }

uint64_t available_memory_bytes(const std::filesystem::path& root) {
  const std::optional<uint64_t> kib = read_field(root / "proc/meminfo", "MemAvailable:");
  const uint64_t left = std::min(kib ? *kib * 1024 : kUnlimited, left_in_control_groups(root));
  return left == kUnlimited ? 0 : left;
}

void restart_peak_rss() {
  // proc(5): 5 makes VmHWM what is resident now.
  std::ofstream("/proc/self/clear_refs") << 5;
}

uint64_t resident_bytes() { return read_field("/proc/self/status", "VmRSS:").value_or(0) * 1024; }

uint64_t peak_rss_bytes() {
  // getrusage() also counts what the process held before exec; the status file does not.
  if (const auto kib = read_field("/proc/self/status", "VmHWM:")) return *kib * 1024;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace godwit
