#include "apps/perplexity_statistics.h"

#include <algorithm>
#include <cmath>

namespace godwit::apps {
namespace {

constexpr size_t kMinForErrors = 10;  // of fewer values there is no error worth telling

Estimate mean_of(double sum, double sum_squares, size_t count) {
  if (count == 0) return {};
  const auto n = static_cast<double>(count);
  const double mean = sum / n;
  const double variance = sum_squares / n - mean * mean;
  const bool tells = variance > 0 && count > kMinForErrors;
  return {.value = mean, .error = tells ? std::sqrt(variance / (n - 1)) : 0.0};
}

// Of two means.
double covariance(double a, double b, double ab, size_t count) {
  if (count < kMinForErrors) return 0;
  const auto n = static_cast<double>(count);
  return (ab / n - a / n * (b / n)) / (n - 1);
}

// The standard error of a difference of estimates that vary together.
double error_of_difference(const Estimate& a, const Estimate& b, double covariance) {
  return std::sqrt(std::max(0.0, a.error * a.error + b.error * b.error - 2 * covariance));
}

Estimate exponential(const Estimate& e) {
  const double value = std::exp(e.value);
  return {.value = value, .error = value * e.error};
}

double ratio_or_zero(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace

void PerplexitySum::add(double nll) {
  ++count_;
  sum_ += nll;
  sum_squares_ += nll * nll;
}

Estimate PerplexitySum::mean_nll() const {
  const auto n = static_cast<double>(count_);
  const double mean = count_ == 0 ? 0 : sum_ / n;
  const double variance = count_ == 0 ? 0 : sum_squares_ / n - mean * mean;
  return {.value = mean, .error = variance > 0 && count_ > 1 ? std::sqrt(variance / (n - 1)) : 0};
}

Estimate PerplexitySum::perplexity() const { return exponential(mean_nll()); }

void DivergenceSum::add(const DivergenceScore& score) {
  ++count_;
  nll_ += score.nll;
  nll2_ += score.nll * score.nll;
  base_ += score.nll_base;
  base2_ += score.nll_base * score.nll_base;
  both_ += score.nll * score.nll_base;
  kld_ += score.kld;
  kld2_ += score.kld * score.kld;
  const double square = score.p_diff * score.p_diff;
  diff_ += score.p_diff;
  diff2_ += square;
  diff4_ += square * square;
  n_same_top_ += score.same_top ? 1 : 0;
  klds_.push_back(static_cast<float>(score.kld));
  p_diffs_.push_back(static_cast<float>(score.p_diff));
}

DivergenceFigures DivergenceSum::figures() const {
  DivergenceFigures f;
  f.n_tokens = count_;
  if (count_ == 0) return f;
  const Estimate log_ppl = mean_of(nll_, nll2_, count_);
  const Estimate log_base = mean_of(base_, base2_, count_);
  const double together = covariance(nll_, base_, both_, count_);
  f.ppl = exponential(log_ppl);
  f.ppl_base = exponential(log_base);
  f.correlation = ratio_or_zero(together, log_ppl.error * log_base.error);
  f.log_ratio = {.value = log_ppl.value - log_base.value,
                 .error = error_of_difference(log_ppl, log_base, together)};
  f.ratio = exponential(f.log_ratio);
  f.difference = {
      .value = f.ppl.value - f.ppl_base.value,
      .error = error_of_difference(f.ppl, f.ppl_base, f.ppl.value * f.ppl_base.value * together)};
  f.kld = mean_of(kld_, kld2_, count_);
  f.p_diff = mean_of(diff_, diff2_, count_);
  const Estimate mean_square = mean_of(diff2_, diff4_, count_);
  const double rms = std::sqrt(mean_square.value);
  f.p_diff_rms = {.value = rms, .error = ratio_or_zero(0.5 * mean_square.error, rms)};
  const double top = static_cast<double>(n_same_top_) / static_cast<double>(count_);
  const double top_error =
      count_ < 2 ? 0 : std::sqrt(top * (1 - top) / static_cast<double>(count_ - 1));
  f.same_top = {.value = top, .error = top_error};
  return f;
}

double percentile(std::span<const float> sorted, double fraction) {
  const double at = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double part = at - static_cast<double>(below);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return (1 - part) * static_cast<double>(sorted[below]) +
         part * static_cast<double>(sorted[above]);
}

}  // namespace godwit::apps
