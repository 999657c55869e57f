// What the benches draw: speed against position with the floor, the roofline of kernels, attention
// against length. From measurements to a Plot; nothing here measures.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/decode_timer.h"
#include "apps/bench/plot.h"
#include "apps/bench/prefill_timer.h"
#include "backend/cpu/attention_measure.h"
#include "backend/cpu/matvec_measure.h"

namespace godwit::apps {

// Bytes of a token at a position.
struct PositionBytes {
  size_t position = 0;
  double bytes_per_token = 0;
};

// Rows of one model, and the bytes of a token along the axis.
[[nodiscard]] Plot decode_plot(const BenchSetting& setting, const std::vector<DecodeRow>& rows,
                               const std::vector<PositionBytes>& along);
// A line for each length of prompt.
[[nodiscard]] Plot prefill_plot(const BenchSetting& setting, const std::vector<PrefillRow>& rows);

struct MatVecResult {
  cpu::MatVecCase c;
  cpu::MatVecSpeed speed;
};

// Multiply-adds a second against multiply-adds per byte, below what memory and arithmetic allow:
// the median of the reads, and the best rate out of the cache.
[[nodiscard]] Plot roofline(const std::vector<MatVecResult>& results, double peak_gmacs,
                            const std::string& note);

struct AttentionResult {
  cpu::AttentionCase c;
  cpu::AttentionSpeed speed;
};

// GB/s against positions, a line for each pair of types, and the reads of the same rounds.
[[nodiscard]] Plot attention_plot(const std::vector<AttentionResult>& results,
                                  const std::string& note);

}  // namespace godwit::apps
