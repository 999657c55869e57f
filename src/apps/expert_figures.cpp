#include "apps/expert_figures.h"

#include <fmt/format.h>

#include <algorithm>

namespace godwit::apps {

ExpertFigures expert_figures(const engine::ExpertReport& report, size_t n_tokens) {
  const experts::LayerStatistics total = report.total();
  const auto per_token = [&](uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(std::max<size_t>(n_tokens, 1));
  };
  return {.hit_rate = total.hit_rate(),
          .bytes_per_token = per_token(total.bytes_read),
          .device_per_token = per_token(report.io.device_bytes),
          .stall_ms_per_token = per_token(total.stall_us) * 1e-3};
}

std::string expert_line(const engine::ExpertReport& report, size_t n_tokens) {
  const ExpertFigures f = expert_figures(report, n_tokens);
  return fmt::format(
      "experts: {:.1f} % there, {:.1f} MB/token read ({:.1f} from the device), {:.1f} ms/token "
      "waited",
      100 * f.hit_rate, f.bytes_per_token * 1e-6, f.device_per_token * 1e-6, f.stall_ms_per_token);
}

nlohmann::json expert_json(const engine::ExpertReport& report, size_t n_tokens) {
  const ExpertFigures f = expert_figures(report, n_tokens);
  nlohmann::json layers = nlohmann::json::array();
  for (const engine::ExpertReport::Layer& layer : report.layers) {
    const experts::LayerStatistics& s = layer.counts;
    layers.push_back({{"layer", layer.name},
                      {"hit_rate", s.hit_rate()},
                      {"hits", s.hits - s.prefetch_hits},
                      {"read_ahead_in_time", s.prefetch_hits},
                      {"misses", s.misses},
                      {"bytes_read", s.bytes_read},
                      {"stall_ms", static_cast<double>(s.stall_us) * 1e-3},
                      {"failed_reads", s.failed_reads}});
  }
  return {{"hit_rate", f.hit_rate},
          {"bytes_read_per_token", f.bytes_per_token},
          {"device_bytes_per_token", f.device_per_token},
          {"stall_ms_per_token", f.stall_ms_per_token},
          {"slot_bytes", report.slot_bytes},
          {"staging_bytes", report.staging_bytes},
          {"layers", layers}};
}

}  // namespace godwit::apps
