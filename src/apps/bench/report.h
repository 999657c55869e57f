// A table of measurements in four forms: Markdown, CSV, JSON, JSON lines. A row is what it shows in
// Markdown and, for the other three, an object; CSV leaves out the object's arrays. Pure text: the
// commands of `bench` print it as it comes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

[[nodiscard]] Result<BenchFormat> parse_bench_format(const std::string& name);

// In Markdown. Rows are printed as they are measured, so that widths are chosen beforehand.
struct ReportColumn {
  std::string heading;
  size_t width = 0;
  enum class Align : uint8_t { kRight, kLeft } align = Align::kRight;
};

struct ReportRow {
  std::vector<std::string> cells;  // one per column
  nlohmann::ordered_json json;     // an object
  std::string note = {};           // a line of its own below the row, in Markdown only
};

class Report {
 public:
  Report(BenchFormat format, std::vector<ReportColumn> columns)
      : format_(format), columns_(std::move(columns)) {}

  // The text of a row; before the first one comes the header.
  [[nodiscard]] std::string add(const ReportRow& row);
  // What ends the table; the footer is shown in Markdown only.
  [[nodiscard]] std::string end(std::string_view footer) const;

 private:
  [[nodiscard]] std::string header(const ReportRow& first) const;
  [[nodiscard]] std::string markdown(const std::vector<std::string>& cells) const;

  BenchFormat format_;
  std::vector<ReportColumn> columns_;
  bool empty_ = true;
};

// Prints the text of a report to stdout at once.
void show(const std::string& text);

}  // namespace godwit::apps
