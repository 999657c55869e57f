#include "allocation_count.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace {

std::atomic<size_t> n_allocations{0};
std::atomic<size_t> n_to_show{0};

void note() {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  size_t left = n_to_show.load();
  while (left > 0 && !n_to_show.compare_exchange_weak(left, left - 1)) {
  }
  if (left == 0) return;
  std::array<void*, 24> frames;
  const int n = backtrace(frames.data(), static_cast<int>(frames.size()));
  backtrace_symbols_fd(frames.data(), n, STDERR_FILENO);
  (void)!write(STDERR_FILENO, "\n", 1);
}

}  // namespace

// glibc's own, which the replacements go on to; what they give, glibc's free takes back.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  note();
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  note();
  return __libc_calloc(n, size);
}
void* realloc(void* memory, size_t size) {
  note();
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  note();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  note();
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
}

namespace godwit::testing {

AllocationCount::AllocationCount() { n_allocations = 0; }

size_t AllocationCount::count() const { return n_allocations; }

void show_allocations(size_t n) {
  std::array<void*, 1> frame;
  (void)backtrace(frame.data(), 1);  // loads what it needs
  n_to_show = n;
}

}  // namespace godwit::testing
