// What the attention kernels of floats and of blocks share: what the rows of a job see, and the
// fetching of memory that will be wanted next. Unnamed namespace as in isa_rows.h.
#pragma once

#include <cstddef>

#include "backend/cpu/attention_table.h"

namespace godwit::cpu {
namespace {

struct Span {
  size_t begin;
  size_t end;
};

// The positions that one row or another sees; there are some.
[[gnu::always_inline]] inline Span seen_by_rows(const BlockJob& job) {
  Span seen = {job.rows[0].begin, job.rows[0].end};
  for (size_t r = 1; r < job.n_rows; ++r) {
    seen.begin = job.rows[r].begin < seen.begin ? job.rows[r].begin : seen.begin;
    seen.end = job.rows[r].end > seen.end ? job.rows[r].end : seen.end;
  }
  return seen;
}

// Fetches lines ahead evenly over the steps of a loop, so that memory is busy throughout it.
class Fetcher {
 public:
  Fetcher() = default;
  [[gnu::always_inline]] Fetcher(const Ahead& ahead, size_t n_steps)
      : at_(static_cast<const char*>(ahead.bytes)),
        end_(at_ + 64 * ahead.n_lines),
        per_step_(n_steps == 0 ? 0 : (ahead.n_lines + n_steps - 1) / n_steps) {}

  [[gnu::always_inline]] void fetch() {
    for (size_t i = 0; i < per_step_ && at_ < end_; ++i, at_ += 64) __builtin_prefetch(at_, 0, 2);
  }

 private:
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  size_t per_step_ = 0;
};

}  // namespace
}  // namespace godwit::cpu
