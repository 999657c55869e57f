// The tests of a kernel on the whole random model, beside its logits: rows it writes, bytes it
// leaves alone, bits it repeats, what it must not read, lengths where splits begin and end.
#pragma once

#include <span>
#include <vector>

#include "grader/closed_form.h"
#include "grader/measurements.h"
#include "grader/subject.h"

namespace godwit::grader {

// What the tests work on: a subject and a twin with equal caches up to n_positions.
struct KernelBench {
  const GradedModel& model;
  Twin& twin;
  Subject& kernel;
  uint64_t n_positions = 0;  // cached; the row under test is the next
  uint64_t capacity = 0;
  TokenId token;  // of that row
};

// Two rows of cache: the largest relative error of any layer's keys or values.
[[nodiscard]] double row_error(const GradedShape& shape, std::span<const uint16_t> found,
                               std::span<const uint16_t> expected);
// Rounding both to bf16 leaves less than this; another row is 1.4.
inline constexpr double kRowTolerance = 4e-3;

// Rows [n_positions, + n_rows) as D left them in the twin.
[[nodiscard]] TestOutcome row_test(const KernelBench& bench, uint64_t n_rows);
// All other positions are still the twin's, bit for bit.
[[nodiscard]] TestOutcome untouched_test(const KernelBench& bench, uint64_t n_rows);
// The same logits, bit for bit, with every position beyond the row NaN.
[[nodiscard]] TestOutcome poison_test(const KernelBench& bench);
[[nodiscard]] TestOutcome repeat_test(const KernelBench& bench, uint64_t n_launches);
// Logits against D where the row is the last of `lengths` positions.
[[nodiscard]] TestOutcome lengths_test(const KernelBench& bench, std::span<const uint64_t> lengths);
// 1, around the powers of two from 64 to 4,096, 1/132, 1/16, a half and all of the history, and the
// last two of the capacity.
[[nodiscard]] std::vector<uint64_t> edge_lengths(uint64_t n_positions, uint64_t capacity);
// Each Program step's buffers against D's; empty where the subject knows whole tokens only.
[[nodiscard]] std::vector<BufferError> buffer_errors(const KernelBench& bench);

}  // namespace godwit::grader
