// Counts what this program asks of the allocator, on all threads: malloc and its like, operator new
// through them, and mmap. The functions are replaced in the one executable that links
// allocation_count.cpp; glibc only, and not under a sanitizer, which has its own.
#pragma once

#include <cstddef>

namespace godwit::testing {

// From its construction to count().
class AllocationCount {
 public:
  AllocationCount();
  [[nodiscard]] size_t count() const;
};

// Prints who asked, for the first few allocations from now on; 0: nobody.
void show_allocations(size_t n);

}  // namespace godwit::testing
