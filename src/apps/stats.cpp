#include "apps/stats.h"

#include <fmt/format.h>

#include "apps/expert_figures.h"
#include "os/memory.h"

namespace godwit::apps {
namespace {

double per_second(size_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0.0;
}

}  // namespace

std::string resident_text(const ResidentFigures& figures) {
  std::string text = fmt::format("{} resident", engine::format_bytes(figures.peak_bytes));
  if (figures.planned_bytes == 0) return text;
  return text + fmt::format(", {} planned for {} positions",
                            engine::format_bytes(figures.planned_bytes), figures.n_positions);
}

DecodeFigures decode_figures(const engine::Engine& engine, const engine::GenerateResult& result) {
  DecodeFigures figures;
  figures.prompt_tokens_per_s =
      per_second(result.n_prompt - result.n_reused, result.prompt_seconds);
  figures.decode_tokens_per_s = per_second(result.n_decode_tokens, result.decode_seconds);
  if (result.n_decode_tokens > 0) {
    figures.bytes_per_token = static_cast<double>(result.decode_traffic_bytes) /
                              static_cast<double>(result.n_decode_tokens);
    figures.gbps = figures.bytes_per_token * figures.decode_tokens_per_s * 1e-9;
  }
  figures.resident = {.peak_bytes = peak_rss_bytes(),
                      .planned_bytes = engine.plan().resident(),
                      .n_positions = engine.plan().n_context};
  figures.bandwidth_gbps =
      engine::read_bandwidth_gbps(engine.backend(), engine.settings().n_threads);
  return figures;
}

std::string stats_line(const engine::GenerateResult& result, const DecodeFigures& figures) {
  std::string line = fmt::format("prompt {} tokens", result.n_prompt);
  if (result.n_reused > 0) {
    line += fmt::format(" ({} kept", result.n_reused);
    if (result.n_from_tree > 0) line += fmt::format(", {} of them cached", result.n_from_tree);
    line += ")";
  }
  line +=
      fmt::format(", {:.1f} tok/s | decode {} tokens, {:.1f} tok/s", figures.prompt_tokens_per_s,
                  result.tokens.size(), figures.decode_tokens_per_s);
  if (result.n_decode_steps > 0) {
    line += fmt::format(" | {:.1f} MB/token, {:.1f} GB/s", figures.bytes_per_token * 1e-6,
                        figures.gbps);
    if (figures.bandwidth_gbps > 0) {
      line += fmt::format(", {:.0f} % of the {:.1f} GB/s measured",
                          100 * figures.gbps / figures.bandwidth_gbps, figures.bandwidth_gbps);
    }
  }
  if (const engine::SpeculationStats& s = result.speculation; s.n_drafted > 0) {
    line += fmt::format(
        " | drafted {}, right {} ({:.0f} %), {:.2f} tokens/step, gain {:.2f}x", s.n_drafted,
        s.n_accepted, 100 * static_cast<double>(s.n_accepted) / static_cast<double>(s.n_drafted),
        static_cast<double>(result.n_decode_tokens) / static_cast<double>(result.n_decode_steps),
        s.gain());
  }
  if (!result.decode_experts.layers.empty() && result.n_decode_tokens > 0) {
    line += " | " + expert_line(result.decode_experts, result.n_decode_tokens);
  }
  if (figures.resident.peak_bytes > 0) line += " | " + resident_text(figures.resident);
  line += fmt::format(" | ended by {}", engine::stop_reason_name(result.reason));
  return line;
}

}  // namespace godwit::apps
