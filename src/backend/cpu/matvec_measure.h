// How fast a mat-vec kernel is at one shape, set beside what memory gave in the same rounds: a
// round reads every byte of all copies of the matrix with nothing else to do, then multiplies with
// them, one after the other, as the steps of a token do (shared out and ended with a barrier).
// Together the copies are more than any cache holds. Called by godwit_matvec_bench and `bench
// kernel`; prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernel_table.h"
#include "base/result.h"

namespace godwit::cpu {

struct MatVecCase {
  const MatVecKernel* kernel = nullptr;
  size_t rows = 2048;
  size_t cols = 2048;
  size_t n_tokens = 1;
  // Of activations: activation_planes() is what the executor multiplies, one is half of that.
  size_t n_planes = 1;
  size_t n_threads = 1;
  size_t n_rounds = 7;
};

// Medians of the rounds.
struct MatVecSpeed {
  double us = 0;         // of one product
  uint64_t bytes = 0;    // of its packed weights
  size_t n_copies = 0;   // of the matrix in memory
  double gbps = 0;       // bytes / us
  double read_gbps = 0;  // of the plain reads, by as many threads
  // Of the rounds' quotients with the better of the two reads: what else runs here slows both. More
  // than 1 tells of other work, not of the kernel.
  double share = 0;
  double gmacs = 0;  // G multiply-adds/s; planes of a token are one
};

// Well under a second for decode. Errors: columns that are not whole blocks, more planes than the
// kernel's activations have, memory. Aborts where a result is wrong.
[[nodiscard]] Result<MatVecSpeed> measure_matvec(const MatVecCase& c);

// The same where every thread has 64 rows of its own in its cache, whatever c.rows: what the
// arithmetic alone takes. `us` and `bytes` are of all threads' rows; best of the rounds, no reads.
[[nodiscard]] Result<MatVecSpeed> measure_cached_matvec(const MatVecCase& c);

// Bytes that the copies of a matrix take together at least: several times the last caches.
[[nodiscard]] uint64_t matvec_copies_bytes();

}  // namespace godwit::cpu
