// The rows of `bench kernel`.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/report.h"
#include "backend/cpu/attention_measure.h"
#include "backend/cpu/matvec_measure.h"

namespace godwit::apps {

[[nodiscard]] std::vector<ReportColumn> matvec_columns();
[[nodiscard]] ReportRow matvec_row(const cpu::MatVecCase& c, const cpu::MatVecSpeed& speed);

[[nodiscard]] std::vector<ReportColumn> attention_columns();
[[nodiscard]] ReportRow attention_row(const cpu::AttentionCase& c,
                                      const cpu::AttentionSpeed& speed);

// Multiply-adds for each byte of weights.
[[nodiscard]] double intensity(const cpu::MatVecCase& c, const cpu::MatVecSpeed& speed);

}  // namespace godwit::apps
