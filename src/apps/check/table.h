// The table that `check kernels`, `check parity` and `check needles` print: one row per thing
// checked, its error beside its bound, as it is found; or all of it as one JSON object at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct CheckRow {
  std::string name;
  std::string check;
  size_t n_cases = 0;
  double error = 0;
  double bound = 0;
  bool holds = false;
  std::string at;  // of the error, or what was found
};

struct CheckTableSettings {
  std::string name;  // "kernels"
  bool as_json = false;
};

class CheckTable {
 public:
  explicit CheckTable(CheckTableSettings settings) : settings_(std::move(settings)) {}

  // Prints the row; where the table is JSON, a line of progress on stderr now and then.
  void add(CheckRow row);
  // Prints what is left. Errors: how many rows do not hold, or that there are none.
  [[nodiscard]] Status finish();

 private:
  void print_json() const;

  CheckTableSettings settings_;
  std::vector<CheckRow> rows_;
};

}  // namespace godwit::apps
