// A buffer whose last byte is the last before a page that may not be touched, so that one byte
// read or written past the end stops the test at once. Owns its pages; for tests only.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>

#include "base/bits.h"
#include "base/check.h"

namespace godwit::testing {

class GuardedBuffer {
 public:
  // `size_bytes` zero bytes; they begin at a multiple of every power of two that divides the size
  // (up to a page).
  explicit GuardedBuffer(size_t size_bytes) : size_bytes_(size_bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = round_up(size_bytes, page);
    mapped_bytes_ = usable + page;
    void* pages =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(pages != MAP_FAILED, "guarded buffer: no memory");
    pages_ = static_cast<std::byte*>(pages);
    check(mprotect(pages_ + usable, page, PROT_NONE) == 0, "guarded buffer: no guard page");
    begin_ = pages_ + (usable - size_bytes);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(pages_, mapped_bytes_); }

  [[nodiscard]] std::span<std::byte> bytes() const { return {begin_, size_bytes_}; }

  // The bytes as objects of a trivial type.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    void* begin = begin_;
    return {static_cast<T*>(begin), size_bytes_ / sizeof(T)};
  }

 private:
  size_t size_bytes_;
  size_t mapped_bytes_ = 0;
  std::byte* pages_ = nullptr;
  std::byte* begin_ = nullptr;
};

}  // namespace godwit::testing
