#include "grader/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "grader/mutant.h"

namespace godwit::grader {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Infinity for nothing, and for a NaN anywhere: neither may pass for small.
double largest(const std::vector<double>& values) {
  double worst = values.empty() ? kInfinity : 0.0;
  for (const double v : values) worst = v <= worst ? worst : (std::isnan(v) ? kInfinity : v);
  return worst;
}

template <class Member>
double largest_of_seeds(const Measurements& m, Member errors) {
  double worst = m.seeds.empty() ? kInfinity : 0.0;
  for (const SeedErrors& seed : m.seeds) worst = std::max(worst, largest(seed.*errors));
  return worst;
}

double largest_z(const Measurements& m) {
  std::vector<double> all;
  for (const SeedErrors& seed : m.seeds) all.push_back(seed.r_r);
  return largest(all);
}

Gate at_most(std::string name, double found, double limit) {
  return {.name = std::move(name),
          .passed = found <= limit,
          .found = found,
          .limit = limit,
          .detail = {}};
}

// Every step of every seed must be there.
Gate complete(const Measurements& m) {
  Gate gate{.name = "every seed and step was run",
            .passed = m.n_steps > 0 && !m.seeds.empty(),
            .found = 0,
            .limit = static_cast<double>(m.n_steps),
            .detail = {}};
  gate.found = gate.limit;
  for (const SeedErrors& seed : m.seeds) {
    const size_t found =
        m.subject.empty() ? seed.t_r.size() : std::min(seed.t_r.size(), seed.k_r.size());
    if (found == m.n_steps) continue;
    gate.passed = false;
    gate.found = static_cast<double>(found);
    gate.detail = fmt::format("seed {} has {} of {} steps", seed.seed, found, m.n_steps);
  }
  return gate;
}

Gate mutant_gate(const Measurements& m, std::string_view name, double tol) {
  Gate gate{.name = fmt::format("mutant {} is caught", name),
            .passed = false,
            .found = 0,
            .limit = tol,
            .detail = "not run"};
  const auto found = std::ranges::find(m.mutants, name, &MutantErrors::name);
  if (found == m.mutants.end()) return gate;
  gate.found = margin_of(*found);
  if (found->m_r.size() != m.seeds.size()) {
    gate.detail = fmt::format("run on {} of {} seeds", found->m_r.size(), m.seeds.size());
    return gate;
  }
  const bool outside = gate.found > tol;
  gate.passed = outside || !found->caught_by.empty();
  gate.detail = outside                     ? fmt::format("{:.1f} x tol", gate.found / tol)
                : !found->caught_by.empty() ? fmt::format("by the {} test", found->caught_by)
                                            : "inside the tolerance, and no test failed";
  return gate;
}

Gate buffer_gate(const Measurements& m) {
  Gate gate = at_most("kernel against D, step by step", m.buffers.empty() ? kInfinity : 0.0,
                      kDoubleTolerance);
  for (const BufferError& b : m.buffers) {
    if (b.error <= gate.found) continue;
    gate.found = std::isnan(b.error) ? kInfinity : b.error;
    gate.detail = fmt::format("{}, {}", b.step, b.buffer);
  }
  gate.passed = gate.found <= gate.limit;
  // The first that differs says more than the largest.
  for (const BufferError& b : m.buffers) {
    if (b.error <= kDoubleTolerance) continue;
    gate.detail = fmt::format("first: {}, {}, {:.3g}", b.step, b.buffer, b.error);
    break;
  }
  return gate;
}

Gate depth_gate(const Measurements& m) {
  Gate gate = at_most("kernel against D, depth by depth", m.depths.empty() ? kInfinity : 0.0,
                      kDoubleTolerance);
  for (const DepthError& d : m.depths) {
    const double error = std::isnan(d.error) || !d.failure.empty() ? kInfinity : d.error;
    if (error <= gate.found) continue;
    gate.found = error;
    // The first that differs says more than the largest.
    if (!gate.passed) continue;
    gate.passed = error <= gate.limit;
    gate.detail =
        fmt::format("{} layers{}{}", d.n_layers, d.failure.empty() ? "" : ": ", d.failure);
  }
  return gate;
}

void kernel_gates(const Measurements& m, Verdict& verdict) {
  verdict.gates.push_back(
      at_most("kernel against R", largest_of_seeds(m, &SeedErrors::k_r), verdict.tol));
  verdict.gates.push_back(
      at_most("kernel against D, logits", largest_of_seeds(m, &SeedErrors::k_d), kDoubleTolerance));
  verdict.gates.push_back(depth_gate(m));
  if (!m.buffers.empty()) verdict.gates.push_back(buffer_gate(m));
  for (const std::string_view name : kKernelTests) {
    if (std::ranges::find(m.tests, name, &TestOutcome::name) != m.tests.end()) continue;
    verdict.gates.push_back(
        {.name = fmt::format("test {}", name), .passed = false, .detail = "not run"});
  }
  for (const TestOutcome& test : m.tests) {
    verdict.gates.push_back({.name = "test " + test.name,
                             .passed = test.passed,
                             .found = test.worst,
                             .limit = 1.0,
                             .detail = test.detail});
  }
}

}  // namespace

bool Verdict::passed() const { return std::ranges::all_of(gates, &Gate::passed); }

double margin_of(const MutantErrors& mutant) {
  double smallest = mutant.m_r.empty() ? 0.0 : kInfinity;
  for (const double v : mutant.m_r) smallest = v >= smallest ? smallest : (std::isnan(v) ? 0.0 : v);
  return smallest;
}

Verdict judge(const Measurements& m) {
  Verdict verdict;
  verdict.e = largest_of_seeds(m, &SeedErrors::t_r);
  verdict.z = largest_z(m);
  verdict.tol = kToleranceFactor * verdict.e;
  verdict.gates.push_back(complete(m));
  verdict.gates.push_back(at_most("E, R against T", verdict.e, kLargestE));
  verdict.gates.push_back(at_most("Z, R against itself", verdict.z, verdict.e / 10));
  verdict.gates.push_back(
      at_most("T against D", largest_of_seeds(m, &SeedErrors::t_d), kDoubleTolerance));
  for (const MutantRow& row : kMutants) {
    verdict.gates.push_back(mutant_gate(m, row.name, verdict.tol));
    ++verdict.n_mutants;
    if (verdict.gates.back().passed) ++verdict.n_mutants_caught;
  }
  if (!m.subject.empty()) kernel_gates(m, verdict);
  return verdict;
}

}  // namespace godwit::grader
