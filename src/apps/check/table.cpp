#include "apps/check/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace godwit::apps {
namespace {

using nlohmann::json;

constexpr size_t kRowsPerLine = 25;  // of progress

json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

}  // namespace

void CheckTable::add(CheckRow row) {
  rows_.push_back(std::move(row));
  const CheckRow& r = rows_.back();
  if (settings_.as_json) {
    if (rows_.size() % kRowsPerLine == 0) {
      std::fprintf(stderr, "check %s: %zu rows, now %s\n", settings_.name.c_str(), rows_.size(),
                   r.name.c_str());
    }
    return;
  }
  if (rows_.size() == 1) {
    std::printf("%-38s %-10s %6s %9s %9s  %-7s %s\n", settings_.name.c_str(), "check", "cases",
                "error", "bound", "verdict", "at");
  }
  const std::string bound = std::isfinite(r.bound) ? fmt::format("{:.2g}", r.bound) : "-";
  const char* const verdict = r.holds ? (bound == "-" ? "told" : "holds") : "FAILS";
  std::printf("%-38s %-10s %6zu %9.2g %9s  %-7s %s\n", r.name.c_str(), r.check.c_str(), r.n_cases,
              r.error, bound.c_str(), verdict, r.at.c_str());
  std::fflush(stdout);
}

void CheckTable::print_json() const {
  json rows = json::array();
  for (const CheckRow& r : rows_) {
    rows.push_back({{"name", r.name},
                    {"check", r.check},
                    {"cases", r.n_cases},
                    {"error", number_or_null(r.error)},
                    {"bound", number_or_null(r.bound)},
                    {"holds", r.holds},
                    {"at", r.at}});
  }
  const bool holds = !rows_.empty() && std::ranges::all_of(rows_, &CheckRow::holds);
  const json out = {{"check", settings_.name}, {"holds", holds}, {"rows", rows}};
  std::printf("%s\n", out.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

Status CheckTable::finish() {
  const auto n_held = static_cast<size_t>(std::ranges::count_if(rows_, &CheckRow::holds));
  if (settings_.as_json) {
    print_json();
  } else {
    std::printf("%zu of %zu rows hold\n", n_held, rows_.size());
  }
  if (rows_.empty()) return fail("check {}: nothing was checked", settings_.name);
  if (n_held < rows_.size()) {
    return fail("check {}: {} of {} rows leave their bounds", settings_.name, rows_.size() - n_held,
                rows_.size());
  }
  return {};
}

}  // namespace godwit::apps
