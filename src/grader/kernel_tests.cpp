#include "grader/kernel_tests.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "grader/gates.h"
#include "grader/relative_error.h"

namespace godwit::grader {
namespace {

constexpr uint64_t kChunkPositions = 1024;
constexpr uint16_t kNan = 0x7fff;

std::vector<float> widen(std::span<const uint16_t> bits) {
  std::vector<float> out(bits.size());
  std::ranges::transform(bits, out.begin(), bf16_to_f32);
  return out;
}

std::vector<float> logits_of(const KernelBench& bench, uint64_t position) {
  std::vector<float> logits(bench.model.shape.n_vocab, std::nanf(""));
  bench.kernel.step(bench.token, position, logits);
  return logits;
}

std::vector<float> double_logits_of(const KernelBench& bench, uint64_t position) {
  std::vector<float> logits(bench.model.shape.n_vocab);
  bench.twin.step({.token = bench.token, .position = position, .precision = TwinPrecision::kDouble},
                  logits, {});
  return logits;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TestOutcome outcome_of(std::string name, bool passed, std::string detail) {
  return {.name = std::move(name),
          .passed = passed,
          .worst = passed ? 0.0 : HUGE_VAL,
          .detail = std::move(detail)};
}

// The numbers of rows [begin, begin + n) of anything with a cache.
template <class Cached>
std::vector<uint16_t> rows_of(const KernelBench& bench, const Cached& cached, uint64_t begin,
                              uint64_t n) {
  std::vector<uint16_t> rows(n * bench.model.shape.position_numbers());
  cached.read_cache(begin, rows);
  return rows;
}

}  // namespace

double row_error(const GradedShape& shape, std::span<const uint16_t> found,
                 std::span<const uint16_t> expected) {
  double worst = 0;
  for (uint64_t begin = 0; begin < shape.position_numbers(); begin += shape.kv_width()) {
    const std::vector<float> a = widen(found.subspan(begin, shape.kv_width()));
    const std::vector<float> b = widen(expected.subspan(begin, shape.kv_width()));
    worst = std::max(worst, relative_error<float, float>(a, b));
  }
  return worst;
}

TestOutcome row_test(const KernelBench& bench, uint64_t n_rows) {
  TestOutcome outcome{.name = "KV rows", .passed = false, .worst = 0, .detail = {}};
  for (uint64_t i = 0; i < n_rows; ++i) {
    const uint64_t position = bench.n_positions + i;
    const double error = row_error(bench.model.shape, rows_of(bench, bench.kernel, position, 1),
                                   rows_of(bench, bench.twin, position, 1));
    if (error / kRowTolerance <= outcome.worst) continue;
    outcome.worst = error / kRowTolerance;
    outcome.detail = fmt::format("position {}: error {:.3g}", position, error);
  }
  outcome.passed = outcome.worst <= 1.0;
  return outcome;
}

TestOutcome untouched_test(const KernelBench& bench, uint64_t n_rows) {
  const uint64_t written_end = bench.n_positions + n_rows;
  for (uint64_t begin = 0; begin < bench.capacity; begin += kChunkPositions) {
    const uint64_t n = std::min(kChunkPositions, bench.capacity - begin);
    const std::vector<uint16_t> found = rows_of(bench, bench.kernel, begin, n);
    const std::vector<uint16_t> expected = rows_of(bench, bench.twin, begin, n);
    if (found == expected) continue;
    for (size_t i = 0; i < found.size(); ++i) {
      const uint64_t position = begin + i / bench.model.shape.position_numbers();
      if (found[i] == expected[i]) continue;
      if (position >= bench.n_positions && position < written_end) continue;
      return outcome_of(
          "other bytes of the cache", false,
          fmt::format("position {}, number {}: {:#06x} became {:#06x}", position,
                      i % bench.model.shape.position_numbers(), expected[i], found[i]));
    }
  }
  return outcome_of("other bytes of the cache", true, {});
}

TestOutcome poison_test(const KernelBench& bench) {
  const std::vector<float> clean = logits_of(bench, bench.n_positions);
  const uint64_t begin = bench.n_positions + 1;
  const std::vector<uint16_t> kept = rows_of(bench, bench.kernel, begin, bench.capacity - begin);
  bench.kernel.write_cache(begin, std::vector<uint16_t>(kept.size(), kNan));
  const bool same = same_bits(clean, logits_of(bench, bench.n_positions));
  bench.kernel.write_cache(begin, kept);
  return outcome_of("NaN beyond the length", same && !std::isnan(clean[0]),
                    same ? "" : "the logits changed");
}

TestOutcome repeat_test(const KernelBench& bench, uint64_t n_launches) {
  const std::vector<float> first = logits_of(bench, bench.n_positions);
  for (uint64_t i = 1; i < n_launches; ++i) {
    if (same_bits(first, logits_of(bench, bench.n_positions))) continue;
    return outcome_of("launches repeat bit for bit", false,
                      fmt::format("launch {} of {} differs", i, n_launches));
  }
  return outcome_of("launches repeat bit for bit", !std::isnan(first[0]),
                    fmt::format("{} launches", n_launches));
}

TestOutcome lengths_test(const KernelBench& bench, std::span<const uint64_t> lengths) {
  TestOutcome outcome{.name = "lengths at edges", .passed = false, .worst = 0, .detail = {}};
  // D goes on from the kernel's own rows.
  bench.twin.write_cache(bench.n_positions, rows_of(bench, bench.kernel, bench.n_positions,
                                                    bench.capacity - bench.n_positions));
  for (const uint64_t length : lengths) {
    const uint64_t position = length - 1;
    const std::vector<uint16_t> kept = rows_of(bench, bench.twin, position, 1);
    const std::vector<uint16_t> kernel_kept = rows_of(bench, bench.kernel, position, 1);
    const double error =
        relative_error<float, float>(logits_of(bench, position), double_logits_of(bench, position));
    bench.twin.write_cache(position, kept);
    bench.kernel.write_cache(position, kernel_kept);
    if (error / kDoubleTolerance <= outcome.worst) continue;
    outcome.worst = error / kDoubleTolerance;
    outcome.detail = fmt::format("length {}: error {:.3g} against D", length, error);
  }
  outcome.passed = outcome.worst <= 1.0;
  return outcome;
}

std::vector<uint64_t> edge_lengths(uint64_t n_positions, uint64_t capacity) {
  std::set<uint64_t> lengths{1};
  const auto around = [&](uint64_t edge) {
    for (uint64_t n = edge > 1 ? edge - 1 : 1; n <= edge + 1; ++n) {
      if (n <= capacity) lengths.insert(n);
    }
  };
  for (uint64_t edge = 64; edge <= 4096; edge *= 2) around(edge);
  around(n_positions / 132);
  around(n_positions / 16);
  around(n_positions / 2);
  around(n_positions);
  lengths.insert(capacity - 1);
  lengths.insert(capacity);
  return {lengths.begin(), lengths.end()};
}

std::vector<BufferError> buffer_errors(const KernelBench& bench) {
  struct Expected {
    std::string step;
    std::string buffer;
    std::vector<double> values;
  };
  std::vector<Expected> expected;
  std::vector<float> logits(bench.model.shape.n_vocab);
  bench.twin.step(
      {.token = bench.token, .position = bench.n_positions, .precision = TwinPrecision::kDouble},
      logits, [&](std::string_view step, std::string_view buffer, std::span<const double> values) {
        expected.push_back(
            {std::string(step), std::string(buffer), {values.begin(), values.end()}});
      });
  const program::Program& program = bench.model.program;
  std::vector<BufferError> errors;
  size_t ran = program.main.size() + 1;
  for (const Expected& e : expected) {
    const auto step = std::ranges::find(program.main, e.step, &program::Step::label);
    const auto buffer = std::ranges::find(program.buffers, e.buffer, &program::Buffer::name);
    const auto n_steps = static_cast<size_t>(step - program.main.begin()) + 1;
    if (n_steps != ran && !bench.kernel.partial_step(bench.token, bench.n_positions, n_steps)) {
      return errors;
    }
    ran = n_steps;
    std::vector<float> found(e.values.size());
    const auto id = static_cast<uint32_t>(buffer - program.buffers.begin());
    bench.kernel.read({id}, found);
    errors.push_back({.step = e.step,
                      .buffer = e.buffer,
                      .error = relative_error<float, double>(found, e.values)});
  }
  return errors;
}

}  // namespace godwit::grader
