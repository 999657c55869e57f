#include "apps/bench/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/check.h"

namespace godwit::apps {
namespace {

using nlohmann::ordered_json;

// As llama-bench: every value in quotes, a quote within doubled. A path may hold any bytes.
std::string csv_value(const ordered_json& value) {
  const std::string text = value.is_string()
                               ? value.get<std::string>()
                               : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

enum class CsvLine { kNames, kValues };

std::string csv_line(const ordered_json& row, CsvLine line) {
  std::string text;
  for (const auto& [key, value] : row.items()) {
    if (value.is_array()) continue;  // samples are for JSON
    if (!text.empty()) text += ',';
    text += line == CsvLine::kNames ? key : csv_value(value);
  }
  return text + '\n';
}

std::string json_line(const ordered_json& row) {
  return row.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

Result<BenchFormat> parse_bench_format(const std::string& name) {
  if (name == "md") return BenchFormat::kMarkdown;
  if (name == "csv") return BenchFormat::kCsv;
  if (name == "json") return BenchFormat::kJson;
  if (name == "jsonl") return BenchFormat::kJsonLines;
  return fail("output format '{}': expected md, csv, json or jsonl", name);
}

std::string Report::markdown(const std::vector<std::string>& cells) const {
  check(cells.size() == columns_.size(), "a cell for each column");
  std::string line = "|";
  for (size_t i = 0; i < cells.size(); ++i) {
    line += columns_[i].align == ReportColumn::Align::kLeft
                ? fmt::format(" {:<{}} |", cells[i], columns_[i].width)
                : fmt::format(" {:>{}} |", cells[i], columns_[i].width);
  }
  return line + '\n';
}

std::string Report::header(const ReportRow& first) const {
  switch (format_) {
    case BenchFormat::kMarkdown: {
      std::vector<std::string> names;
      std::vector<std::string> rules;
      for (const ReportColumn& column : columns_) {
        const bool right = column.align == ReportColumn::Align::kRight;
        names.push_back(column.heading);
        rules.push_back(std::string(column.width - (right ? 1 : 0), '-') + (right ? ":" : ""));
      }
      return markdown(names) + markdown(rules);
    }
    case BenchFormat::kCsv:
      return csv_line(first.json, CsvLine::kNames);
    case BenchFormat::kJson:
      return "[\n";
    case BenchFormat::kJsonLines:
      return "";
  }
  return "";
}

std::string Report::add(const ReportRow& row) {
  const bool first = std::exchange(empty_, false);
  const std::string before = first ? header(row) : "";
  switch (format_) {
    case BenchFormat::kMarkdown:
      return before + markdown(row.cells) + (row.note.empty() ? "" : row.note + '\n');
    case BenchFormat::kCsv:
      return before + csv_line(row.json, CsvLine::kValues);
    case BenchFormat::kJson:
      return before + (first ? "  " : ",\n  ") + json_line(row.json);
    case BenchFormat::kJsonLines:
      return json_line(row.json) + '\n';
  }
  return "";
}

std::string Report::end(std::string_view footer) const {
  switch (format_) {
    case BenchFormat::kMarkdown:
      return fmt::format("\n{}\n", footer);
    case BenchFormat::kJson:
      return empty_ ? "[]\n" : "\n]\n";
    case BenchFormat::kCsv:
    case BenchFormat::kJsonLines:
      return "";
  }
  return "";
}

void show(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace godwit::apps
