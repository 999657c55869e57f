#include "grader/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace godwit::grader {
namespace {

using nlohmann::json;

std::string number(double value) {
  if (!std::isfinite(value)) return "inf";
  if (value != 0 && std::abs(value) < 1e-2) return fmt::format("{:.2e}", value);
  return fmt::format("{:.4f}", value);
}

// JSON has no infinity.
json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
json numbers_json(const std::vector<double>& values) {
  json out = json::array();
  for (const double v : values) out.push_back(number_or_null(v));
  return out;
}

std::string range_of(const std::vector<double>& values) {
  if (values.empty()) return "-";
  const auto [low, high] = std::ranges::minmax_element(values);
  return number(*low) + " .. " + number(*high);
}

std::string seed_rows(const Measurements& m) {
  std::string out =
      fmt::format("{:>6} {:>23} {:>9} {:>23} {:>23} {:>23}\n", "seed", "T against R (E)",
                  "R self(Z)", "T against D", "kernel against R", "kernel against D");
  for (const SeedErrors& s : m.seeds) {
    out += fmt::format("{:>6} {:>23} {:>9} {:>23} {:>23} {:>23}\n", s.seed, range_of(s.t_r),
                       number(s.r_r), range_of(s.t_d), range_of(s.k_r), range_of(s.k_d));
  }
  return out;
}

std::string mutant_rows(const Measurements& m, const Verdict& verdict) {
  std::string out =
      fmt::format("{:<14} {:>23} {:>8}  {}\n", "mutant", "error against R", "x tol", "caught by");
  for (const MutantErrors& mutant : m.mutants) {
    const double margin = margin_of(mutant);
    const bool outside = margin > verdict.tol;
    const std::string by = outside ? "tolerance" : mutant.caught_by;
    out += fmt::format("{:<14} {:>23} {:>8.1f}  {}\n", mutant.name, range_of(mutant.m_r),
                       margin / verdict.tol, by.empty() ? "NOTHING" : by);
  }
  return out;
}

std::string gate_rows(const Verdict& verdict) {
  std::string out = fmt::format("{:<34} {:>10} {:>10}  {}\n", "gate", "found", "limit", "");
  for (const Gate& gate : verdict.gates) {
    out += fmt::format("{:<34} {:>10} {:>10}  {}{}{}\n", gate.name, number(gate.found),
                       number(gate.limit), gate.passed ? "ok" : "FAILED",
                       gate.detail.empty() ? "" : ": ", gate.detail);
  }
  return out;
}

json seeds_json(const Measurements& m) {
  json out = json::array();
  for (const SeedErrors& s : m.seeds) {
    out.push_back({{"seed", s.seed},
                   {"z", number_or_null(s.r_r)},
                   {"twin_reference", numbers_json(s.t_r)},
                   {"twin_double", numbers_json(s.t_d)},
                   {"kernel_reference", numbers_json(s.k_r)},
                   {"kernel_double", numbers_json(s.k_d)}});
  }
  return out;
}

json margins_json(const Measurements& m) {
  json out = json::object();
  for (const MutantErrors& mutant : m.mutants) {
    out[mutant.name] = {{"errors", numbers_json(mutant.m_r)}, {"caught_by", mutant.caught_by}};
  }
  return out;
}

json gates_json(const Verdict& verdict) {
  json out = json::array();
  for (const Gate& gate : verdict.gates) {
    out.push_back({{"name", gate.name},
                   {"passed", gate.passed},
                   {"found", number_or_null(gate.found)},
                   {"limit", number_or_null(gate.limit)},
                   {"detail", gate.detail}});
  }
  return out;
}

}  // namespace

std::string report_text(const Measurements& m, const Verdict& verdict) {
  std::string out = fmt::format("{}, {} cached positions, {} decode steps, {} seeds\n", m.model,
                                m.n_positions, m.n_steps, m.seeds.size());
  if (!m.subject.empty()) out += fmt::format("kernel: {}\n", m.subject);
  out += fmt::format("E {}   Z {}   tol = {} E = {}\n\n", number(verdict.e), number(verdict.z),
                     kToleranceFactor, number(verdict.tol));
  out += seed_rows(m) + "\n" + mutant_rows(m, verdict) + "\n" + gate_rows(verdict) + "\n";
  out += fmt::format("{} of {} mutants caught; {}\n", verdict.n_mutants_caught, verdict.n_mutants,
                     verdict.passed() ? "every gate passed" : "FAILED");
  return out;
}

std::string report_json(const Measurements& m, const Verdict& verdict) {
  json buffers = json::array();
  for (const BufferError& b : m.buffers) {
    buffers.push_back({b.step, b.buffer, number_or_null(b.error)});
  }
  json depths = json::array();
  for (const DepthError& d : m.depths) depths.push_back({d.n_layers, number_or_null(d.error)});
  const json out = {{"passed", verdict.passed()},
                    {"model", m.model},
                    {"kernel", m.subject},
                    {"positions", m.n_positions},
                    {"steps", m.n_steps},
                    {"E", number_or_null(verdict.e)},
                    {"Z", number_or_null(verdict.z)},
                    {"tol", number_or_null(verdict.tol)},
                    {"mutants", verdict.n_mutants},
                    {"mutants_caught", verdict.n_mutants_caught},
                    {"margins", margins_json(m)},
                    {"gates", gates_json(verdict)},
                    {"seeds", seeds_json(m)},
                    {"depth_errors", depths},
                    {"buffer_errors", buffers}};
  return out.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace godwit::grader
