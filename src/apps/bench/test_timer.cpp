#include "apps/bench/test_timer.h"

#include <algorithm>
#include <chrono>

#include "apps/bench/bench_setting.h"
#include "base/random.h"
#include "program/traffic.h"

namespace godwit::apps {

TokenId bench_token(const engine::Engine& engine, size_t i) {
  return {static_cast<int32_t>(random_bits(1, i) % engine.program().n_vocab)};
}

std::vector<TokenId> bench_tokens(const engine::Engine& engine, size_t n) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(bench_token(engine, i));
  return ids;
}

double bench_bytes_per_token(const engine::Engine& engine, const BenchTest& test) {
  program::TrafficInput input{.position = test.n_depth,
                              .n_rows = 1,
                              .k_type = engine.settings().k_type,
                              .v_type = engine.settings().v_type};
  uint64_t bytes = 0;
  const size_t chunk = engine.settings().chunk_tokens;
  for (size_t done = 0; done < test.n_prompt;) {
    input.n_rows = std::min(chunk - input.position % chunk, test.n_prompt - done);
    bytes += program::traffic_of(engine.program(), input).total();
    done += input.n_rows;
    input.position += input.n_rows;
  }
  input.n_rows = 1;
  for (size_t i = 0; i < test.n_gen; ++i, ++input.position) {
    bytes += program::traffic_of(engine.program(), input).total();
  }
  return static_cast<double>(bytes) / static_cast<double>(test.n_prompt + test.n_gen);
}

Result<BenchRow> TestTimer::measure(const BenchTest& test, size_t repetitions) {
  BenchRow row{.test = test,
               .time = bench_time(),
               .samples_ns = {},
               .bytes_per_token = bench_bytes_per_token(engine_, test),
               .experts = {}};
  if (Status s = warm_up(test); !s) return fail(s.error());
  timed_experts_ = {};
  for (size_t i = 0; i < repetitions; ++i) {
    const Result<double> ns = run(test);
    if (!ns) return fail(ns.error());
    row.samples_ns.push_back(*ns);
  }
  row.experts = std::move(timed_experts_);
  return row;
}

Status TestTimer::warm_up(const BenchTest& test) {
  const BenchTest brief{.n_prompt = std::min<size_t>(test.n_prompt, 32),
                        .n_gen = std::min<size_t>(test.n_gen, 2),
                        .n_depth = 0};
  const Result<double> ns = run(brief);
  if (!ns) return fail(ns.error());
  return {};
}

// Nanoseconds of the prompt and the steps; filling the depth is not counted.
Result<double> TestTimer::run(const BenchTest& test) {
  session_.reset();
  const std::vector<TokenId> ids = bench_tokens(engine_, test.n_depth + test.n_prompt);
  if (test.n_depth > 0) {
    if (Status s = session_.set_prompt(std::span(ids).first(test.n_depth), {}); !s) {
      return fail(s.error());
    }
  }
  const engine::ExpertReport before = engine::expert_report(engine_);
  const auto start = std::chrono::steady_clock::now();
  if (test.n_prompt > 0) {
    if (Status s = session_.set_prompt(ids, {}); !s) return fail(s.error());
  }
  for (size_t i = 0; i < test.n_gen; ++i) {
    const TokenId next = bench_token(engine_, ids.size() + i);
    const Status s =
        session_.tokens().empty() ? session_.set_prompt({&next, 1}, {}) : session_.append(next);
    if (!s) return fail(s.error());
  }
  const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
  timed_experts_.add(engine::expert_report(engine_).since(before));
  return ns.count();
}

}  // namespace godwit::apps
