// What the rows of a bench say of the model, the machine and this build.
#pragma once

#include "apps/bench/bench_report.h"
#include "engine/engine.h"

namespace godwit::apps {

// Measures the read bandwidth, which takes a fraction of a second.
[[nodiscard]] BenchSetting bench_setting(const engine::Engine& engine);

// The commit this program was built from.
[[nodiscard]] std::string_view build_commit();
// Now, as rows have it: ISO 8601, UTC.
[[nodiscard]] std::string bench_time();

}  // namespace godwit::apps
