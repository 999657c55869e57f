#include "apps/perplexity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace godwit::apps {
namespace {

using nlohmann::json;

constexpr size_t kMinTokens = 100;

struct Share {
  const char* label;  // as upstream writes it, in four columns
  const char* key;
  double fraction;
};

constexpr auto kKldShares = std::to_array<Share>({{"99.9%", "p99_9", 0.999},
                                                  {"99.0%", "p99", 0.99},
                                                  {"95.0%", "p95", 0.95},
                                                  {"90.0%", "p90", 0.9},
                                                  {"Median", "median", 0.5},
                                                  {"10.0%", "p10", 0.1},
                                                  {" 5.0%", "p5", 0.05},
                                                  {" 1.0%", "p1", 0.01},
                                                  {" 0.1%", "p0_1", 0.001}});
constexpr auto kDiffShares = std::to_array<Share>({{"99.9%", "p99_9", 0.999},
                                                   {"99.0%", "p99", 0.99},
                                                   {"95.0%", "p95", 0.95},
                                                   {"90.0%", "p90", 0.9},
                                                   {"75.0%", "p75", 0.75},
                                                   {"Median", "median", 0.5},
                                                   {"25.0%", "p25", 0.25},
                                                   {"10.0%", "p10", 0.1},
                                                   {" 5.0%", "p5", 0.05},
                                                   {" 1.0%", "p1", 0.01},
                                                   {" 0.1%", "p0_1", 0.001}});

std::vector<float> ascending(std::span<const float> values) {
  std::vector<float> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted;
}

// U+00B1, U+0394: upstream's text, not ours to spell otherwise.
std::string pair_text(const char* label, const Estimate& e) {
  return fmt::format("{:<30}: {:10.6f} \u00b1 {:10.6f}\n", label, e.value, e.error);
}

std::string perplexity_block(const DivergenceFigures& f) {
  return "====== Perplexity statistics ======\n" + pair_text("Mean PPL(Q)", f.ppl) +
         pair_text("Mean PPL(base)", f.ppl_base) +
         fmt::format("Cor(ln(PPL(Q)), ln(PPL(base))): {:6.2f}%\n", 100 * f.correlation) +
         pair_text("Mean ln(PPL(Q)/PPL(base))", f.log_ratio) +
         pair_text("Mean PPL(Q)/PPL(base)", f.ratio) +
         pair_text("Mean PPL(Q)-PPL(base)", f.difference);
}

std::string kld_block(const DivergenceFigures& f, std::span<const float> klds) {
  const std::vector<float> sorted = ascending(klds);
  std::string out = fmt::format(
      "====== KL divergence statistics ======\nMean    KLD: {:10.6f} \u00b1 {:10.6f}\n"
      "Maximum KLD: {:10.6f}\n",
      f.kld.value, f.kld.error, sorted.back());
  for (const Share& share : kKldShares) {
    out += fmt::format("{:<7} KLD: {:10.6f}\n", share.label, percentile(sorted, share.fraction));
  }
  return out + fmt::format("Minimum KLD: {:10.6f}\n", sorted.front());
}

std::string p_diff_block(const DivergenceFigures& f, std::span<const float> p_diffs) {
  const std::vector<float> sorted = ascending(p_diffs);
  std::string out = fmt::format(
      "====== Token probability statistics ======\n"
      "Mean    \u0394p: {:6.3f} \u00b1 {:5.3f} %\nMaximum \u0394p: {:6.3f}%\n",
      100 * f.p_diff.value, 100 * f.p_diff.error, 100 * static_cast<double>(sorted.back()));
  for (const Share& share : kDiffShares) {
    out += fmt::format("{:<7} \u0394p: {:6.3f}%\n", share.label,
                       100 * percentile(sorted, share.fraction));
  }
  return out + fmt::format(
                   "Minimum \u0394p: {:6.3f}%\nRMS \u0394p    : {:6.3f} \u00b1 {:5.3f} %\n"
                   "Same top p: {:6.3f} \u00b1 {:5.3f} %\n",
                   100 * static_cast<double>(sorted.front()), 100 * f.p_diff_rms.value,
                   100 * f.p_diff_rms.error, 100 * f.same_top.value, 100 * f.same_top.error);
}

json estimate_json(const Estimate& e) { return {{"value", e.value}, {"error", e.error}}; }

json spread_json(const Estimate& mean, std::span<const float> values,
                 std::span<const Share> shares) {
  const std::vector<float> sorted = ascending(values);
  json out = {
      {"mean", mean.value}, {"error", mean.error}, {"max", sorted.back()}, {"min", sorted.front()}};
  for (const Share& share : shares) out[share.key] = percentile(sorted, share.fraction);
  return out;
}

}  // namespace

std::string chunk_text(PplOutput output, size_t index, const Window& window,
                       const PerplexitySum& sum) {
  switch (output) {
    case PplOutput::kRunning:
      return fmt::format("[{}]{:.4f},", index + 1, sum.perplexity().value);
    case PplOutput::kTable: {
      const Estimate mean = sum.mean_nll();
      return fmt::format("{:8}  {:.4f}  {:4f}  {:4f}\n", window.begin, sum.perplexity().value,
                         mean.value, mean.error);
    }
  }
  return "";
}

std::string final_text(const PerplexitySum& sum) {
  const Estimate ppl = sum.perplexity();
  return fmt::format("Final estimate: PPL = {:.4f} +/- {:.5f}\n", ppl.value, ppl.error);
}

std::string divergence_heading() {
  return "chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence"
         "              \u0394p RMS            Same top p\n";
}

std::string divergence_chunk_text(size_t index, const DivergenceSum& sum) {
  const DivergenceFigures f = sum.figures();
  return fmt::format(
      "{:4}    {:9.4f} \u00b1 {:9.4f}    {:10.5f} \u00b1 {:10.5f}    {:10.5f} \u00b1 {:10.5f}"
      "    {:6.3f} \u00b1 {:6.3f} %    {:6.3f} \u00b1 {:6.3f} %\n",
      index + 1, f.ppl.value, f.ppl.error, f.log_ratio.value, f.log_ratio.error, f.kld.value,
      f.kld.error, 100 * f.p_diff_rms.value, 100 * f.p_diff_rms.error, 100 * f.same_top.value,
      100 * f.same_top.error);
}

std::string divergence_text(const DivergenceSum& sum) {
  const DivergenceFigures f = sum.figures();
  if (f.n_tokens < kMinTokens) return "";
  return "\n" + perplexity_block(f) + "\n" + kld_block(f, sum.klds()) + "\n" +
         p_diff_block(f, sum.p_diffs());
}

json divergence_json(const DivergenceSum& sum) {
  const DivergenceFigures f = sum.figures();
  if (f.n_tokens == 0) return nullptr;
  return {{"ppl_base", estimate_json(f.ppl_base)},
          {"ln_ppl_correlation", f.correlation},
          {"ln_ppl_ratio", estimate_json(f.log_ratio)},
          {"ppl_ratio", estimate_json(f.ratio)},
          {"ppl_difference", estimate_json(f.difference)},
          {"kld", spread_json(f.kld, sum.klds(), kKldShares)},
          {"p_diff", spread_json(f.p_diff, sum.p_diffs(), kDiffShares)},
          {"p_diff_rms", estimate_json(f.p_diff_rms)},
          {"same_top", estimate_json(f.same_top)}};
}

}  // namespace godwit::apps
