// Runs llama-bench's tests on a loaded model: prompts and decode steps of random tokens, at a depth
// that a prompt of its own filled before the clock starts. No sampling (bench decode has it).
#pragma once

#include <vector>

#include "apps/bench/bench_report.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/session.h"

namespace godwit::apps {

// The i-th token of every bench: random, the same in every run.
[[nodiscard]] TokenId bench_token(const engine::Engine& engine, size_t i);
[[nodiscard]] std::vector<TokenId> bench_tokens(const engine::Engine& engine, size_t n);
// program/traffic.h, mean over the tokens of the test.
[[nodiscard]] double bench_bytes_per_token(const engine::Engine& engine, const BenchTest& test);

class TestTimer {
 public:
  TestTimer(engine::Engine& engine, engine::Session session)
      : engine_(engine), session_(std::move(session)) {}

  // One warm-up, then the repetitions.
  [[nodiscard]] Result<BenchRow> measure(const BenchTest& test, size_t repetitions);

 private:
  [[nodiscard]] Status warm_up(const BenchTest& test);
  [[nodiscard]] Result<double> run(const BenchTest& test);

  engine::Engine& engine_;
  engine::Session session_;
  engine::ExpertReport timed_experts_;  // of the repetitions so far
};

}  // namespace godwit::apps
