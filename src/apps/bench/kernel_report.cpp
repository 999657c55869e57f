#include "apps/bench/kernel_report.h"

#include <fmt/format.h>

#include "apps/bench/bench_setting.h"
#include "apps/model_options.h"

namespace godwit::apps {
namespace {

constexpr auto kLeft = ReportColumn::Align::kLeft;

// What both tables end with; of a mat-vec or of attention.
template <typename Speed>
void add_speed(const Speed& speed, ReportRow& row) {
  for (std::string cell :
       {fmt::format("{:.2f}", speed.us), fmt::format("{:.2f}", speed.gbps),
        fmt::format("{:.2f}", speed.read_gbps), fmt::format("{:.1f}", 100 * speed.share),
        fmt::format("{:.1f}", speed.gmacs)}) {
    row.cells.push_back(std::move(cell));
  }
  // Nothing is faster than reading alone: something else ran then.
  if (speed.share > 1.1) row.note = "The reads beside this were disturbed: measure it again.";
  row.json["us"] = speed.us;
  row.json["bytes"] = speed.bytes;
  row.json["gbps"] = speed.gbps;
  row.json["measured_bandwidth_gbps"] = speed.read_gbps;
  row.json["percent_of_bandwidth"] = 100 * speed.share;
  row.json["giga_multiply_adds_per_s"] = speed.gmacs;
  row.json["cpu_info"] = std::string(processor_name());
  row.json["build_commit"] = std::string(build_commit());
  row.json["test_time"] = bench_time();
}

void add_speed_columns(std::vector<ReportColumn>& columns) {
  for (const ReportColumn& column :
       {ReportColumn{"us", 10}, ReportColumn{"GB/s", 7}, ReportColumn{"GB/s read", 9},
        ReportColumn{"% bw", 6}, ReportColumn{"Gmac/s", 8}}) {
    columns.push_back(column);
  }
}

}  // namespace

std::vector<ReportColumn> matvec_columns() {
  std::vector<ReportColumn> columns = {{"kernel", 19, kLeft}, {"rows x cols", 13}, {"tokens", 6},
                                       {"planes", 6},         {"threads", 7},      {"copies", 6}};
  add_speed_columns(columns);
  return columns;
}

ReportRow matvec_row(const cpu::MatVecCase& c, const cpu::MatVecSpeed& speed) {
  ReportRow row{.cells = {std::string(c.kernel->name), fmt::format("{}x{}", c.rows, c.cols),
                          fmt::format("{}", c.n_tokens), fmt::format("{}", c.n_planes),
                          fmt::format("{}", c.n_threads), fmt::format("{}", speed.n_copies)},
                .json = {{"kernel", std::string(c.kernel->name)},
                         {"type", kv_type_name(c.kernel->type)},
                         {"isa", std::string(isa_name(c.kernel->isa))},
                         {"rows", c.rows},
                         {"cols", c.cols},
                         {"n_tokens", c.n_tokens},
                         {"n_planes", c.n_planes},
                         {"n_threads", c.n_threads},
                         {"n_copies", speed.n_copies}}};
  add_speed(speed, row);
  return row;
}

std::vector<ReportColumn> attention_columns() {
  std::vector<ReportColumn> columns = {
      {"K / V", 11, kLeft}, {"isa", 10, kLeft}, {"heads", 10}, {"positions", 9}, {"threads", 7}};
  add_speed_columns(columns);
  return columns;
}

ReportRow attention_row(const cpu::AttentionCase& c, const cpu::AttentionSpeed& speed) {
  const std::string k = kv_type_name(c.k_type);
  const std::string v = kv_type_name(c.v_type);
  const std::string isa(isa_name(c.isa));
  ReportRow row{
      .cells = {k + " / " + v, isa, fmt::format("{}x{}x{}", c.n_heads, c.n_kv_heads, c.head_dim),
                fmt::format("{}", c.n_positions), fmt::format("{}", c.n_threads)},
      .json = {{"type_k", k},
               {"type_v", v},
               {"isa", isa},
               {"n_heads", c.n_heads},
               {"n_kv_heads", c.n_kv_heads},
               {"head_dim", c.head_dim},
               {"n_positions", c.n_positions},
               {"n_threads", c.n_threads}}};
  add_speed(speed, row);
  return row;
}

double intensity(const cpu::MatVecCase& c, const cpu::MatVecSpeed& speed) {
  return static_cast<double>(c.rows) * static_cast<double>(c.cols) *
         static_cast<double>(c.n_tokens) / static_cast<double>(speed.bytes);
}

}  // namespace godwit::apps
