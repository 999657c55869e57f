// Large buffers straight from the system, and how much memory there is to ask for. Buffers are
// zeroed, aligned, given back on destruction, and never shared. Callers decide what fits where;
// nothing here refuses a size because it looks large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace godwit {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;  // no bytes
  // `size` zero bytes, their start a multiple of `alignment` (a power of two, 64 to 2 MiB). From
  // 4 MiB on, huge pages are asked for and the start is a multiple of 2 MiB. Pages count against
  // memory when first written. Errors: the system refuses.
  [[nodiscard]] static Result<AlignedBuffer> create(size_t size, size_t alignment);

  // Brings all of it into memory and keeps it there: it is neither swapped out nor read late.
  // Errors: the system refuses, with the limit that it set.
  [[nodiscard]] Status lock();

  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  void* mapping_ = nullptr;  // what munmap gets; data_ lies inside
  size_t mapping_bytes_ = 0;
};

// What can still be allocated without swapping or being killed: the system's MemAvailable, or what
// is left under the limit of this process' control group (v2 or v1), whichever is less. Page cache
// that the kernel would give up counts as available. 0 when neither can be read.
[[nodiscard]] uint64_t available_memory_bytes();
// The same from another root directory ("<root>/proc/meminfo"), for tests.
[[nodiscard]] uint64_t available_memory_bytes(const std::filesystem::path& root);

// The most memory this process has had resident; 0 when unknown.
[[nodiscard]] uint64_t peak_rss_bytes();
// From now on the most is counted anew, where the system can.
void restart_peak_rss();
// What it has resident now; 0 when unknown.
[[nodiscard]] uint64_t resident_bytes();

}  // namespace godwit
