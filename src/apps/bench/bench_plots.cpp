#include "apps/bench/bench_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/bench/kernel_report.h"
#include "apps/model_options.h"
#include "base/median.h"

namespace godwit::apps {
namespace {

// Adds a point to the series of that name, which is made when it is first named.
void add_point(Plot& plot, const std::string& name, PlotMark mark, PlotPoint point) {
  auto found = std::ranges::find(plot.series, name, &PlotSeries::name);
  if (found == plot.series.end()) {
    plot.series.push_back({.name = name, .mark = mark, .points = {}});
    found = plot.series.end() - 1;
  }
  found->points.push_back(std::move(point));
}

void sort_points(Plot& plot) {
  for (PlotSeries& series : plot.series) std::ranges::sort(series.points, {}, &PlotPoint::x);
}

}  // namespace

Plot decode_plot(const BenchSetting& setting, const std::vector<DecodeRow>& rows,
                 const std::vector<PositionBytes>& along) {
  Plot plot{.title = fmt::format("{}, decode on {}", setting.model_type, setting.backend),
            .note = machine_line(setting),
            .x = {.label = "position"},
            .y = {.label = "tokens/s"},
            .series = {}};
  std::vector<double> bandwidths;
  for (const DecodeRow& row : rows) {
    bandwidths.push_back(row.bandwidth_gbps());
    add_point(plot, "measured", PlotMark::kLinkedPoints,
              {.x = static_cast<double>(row.row.test.n_depth),
               .y = row.tokens_per_s(),
               .label = fmt::format("{:.0f} % of floor", row.percent_of_floor())});
  }
  const double gbps = median_of(std::move(bandwidths));
  const std::string floor = fmt::format("floor at {:.1f} GB/s", gbps);
  for (const PositionBytes& at : along) {
    add_point(plot, floor, PlotMark::kLine,
              {.x = static_cast<double>(at.position), .y = gbps * 1e9 / at.bytes_per_token});
  }
  sort_points(plot);
  return plot;
}

Plot prefill_plot(const BenchSetting& setting, const std::vector<PrefillRow>& rows) {
  Plot plot{.title = fmt::format("{}, prompts on {}", setting.model_type, setting.backend),
            .note = machine_line(setting),
            .x = {.label = "position"},
            .y = {.label = "tokens/s"},
            .series = {}};
  for (const PrefillRow& row : rows) {
    add_point(plot, fmt::format("pp{}", row.row.test.n_prompt), PlotMark::kLinkedPoints,
              {.x = static_cast<double>(row.row.test.n_depth),
               .y = row.tokens_per_s(),
               .label = fmt::format("{:.1f} Gmac/s", row.giga_multiply_adds_per_s())});
  }
  sort_points(plot);
  return plot;
}

Plot roofline(const std::vector<MatVecResult>& results, double peak_gmacs,
              const std::string& note) {
  Plot plot{.title = "Mat-vec kernels, out of memory",
            .note = note,
            .x = {.label = "multiply-adds per byte of weights", .scale = PlotScale::kLogarithmic},
            .y = {.label = "10^9 multiply-adds/s", .scale = PlotScale::kLogarithmic},
            .series = {}};
  std::vector<double> reads;
  std::vector<double> intensities = {peak_gmacs};
  for (const MatVecResult& result : results) {
    const double x = intensity(result.c, result.speed);
    reads.push_back(result.speed.read_gbps);
    intensities.push_back(x);
    add_point(plot, std::string(result.c.kernel->name), PlotMark::kPoints,
              {.x = x,
               .y = result.speed.gmacs,
               .label = fmt::format("{}x{}, {} tokens in {} planes", result.c.rows, result.c.cols,
                                    result.c.n_tokens, result.c.n_planes)});
  }
  const double gbps = median_of(std::move(reads));
  intensities[0] = peak_gmacs / gbps;  // where the lines meet
  const auto [least, most] = std::ranges::minmax(intensities);
  plot.series.push_back(
      {.name = fmt::format("memory, {:.1f} GB/s", gbps),
       .mark = PlotMark::kLine,
       .points = {{.x = least, .y = least * gbps}, {.x = intensities[0], .y = peak_gmacs}}});
  plot.series.push_back(
      {.name = fmt::format("cached, {:.0f} Gmac/s", peak_gmacs),
       .mark = PlotMark::kLine,
       .points = {{.x = intensities[0], .y = peak_gmacs}, {.x = most, .y = peak_gmacs}}});
  return plot;
}

Plot attention_plot(const std::vector<AttentionResult>& results, const std::string& note) {
  Plot plot{.title = "Attention, one token",
            .note = note,
            .x = {.label = "positions", .scale = PlotScale::kLogarithmic},
            .y = {.label = "GB/s of keys and values"},
            .series = {}};
  std::map<size_t, std::vector<double>> reads;
  for (const AttentionResult& result : results) {
    const cpu::AttentionCase& c = result.c;
    add_point(plot,
              fmt::format("{} / {} {} {}x{}x{}", kv_type_name(c.k_type), kv_type_name(c.v_type),
                          isa_name(c.isa), c.n_heads, c.n_kv_heads, c.head_dim),
              PlotMark::kLinkedPoints,
              {.x = static_cast<double>(c.n_positions),
               .y = result.speed.gbps,
               .label = fmt::format("{:.0f} % of the reads", 100 * result.speed.share)});
    reads[c.n_positions].push_back(result.speed.read_gbps);
  }
  for (auto& [n_positions, gbps] : reads) {
    add_point(plot, "reads alone", PlotMark::kLine,
              {.x = static_cast<double>(n_positions), .y = median_of(std::move(gbps))});
  }
  sort_points(plot);
  return plot;
}

}  // namespace godwit::apps
