// Sums over scored tokens and what they amount to: perplexity with its standard error, and the
// statistics of a comparison with a base model, defined as llama-perplexity defines them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/token_scores.h"

namespace godwit::apps {

struct Estimate {
  double value = 0;
  double error = 0;  // one standard error of the mean
};

class PerplexitySum {
 public:
  void add(double nll);
  [[nodiscard]] size_t count() const { return count_; }
  // Mean of -ln p, and e to it.
  [[nodiscard]] Estimate mean_nll() const;
  [[nodiscard]] Estimate perplexity() const;

 private:
  size_t count_ = 0;
  double sum_ = 0;
  double sum_squares_ = 0;
};

struct DivergenceFigures {
  size_t n_tokens = 0;
  Estimate ppl;
  Estimate ppl_base;
  double correlation = 0;  // of ln PPL and ln PPL(base)
  Estimate log_ratio;      // ln(PPL / PPL(base))
  Estimate ratio;
  Estimate difference;  // PPL - PPL(base)
  Estimate kld;
  Estimate p_diff;
  Estimate p_diff_rms;
  Estimate same_top;
};

class DivergenceSum {
 public:
  void add(const DivergenceScore& score);
  [[nodiscard]] DivergenceFigures figures() const;
  // Of every token, in order: 8 bytes each is all that is kept of it.
  [[nodiscard]] std::span<const float> klds() const { return klds_; }
  [[nodiscard]] std::span<const float> p_diffs() const { return p_diffs_; }

 private:
  size_t count_ = 0;
  double nll_ = 0;
  double nll2_ = 0;
  double base_ = 0;
  double base2_ = 0;
  double both_ = 0;
  double kld_ = 0;
  double kld2_ = 0;
  double diff_ = 0;
  double diff2_ = 0;
  double diff4_ = 0;
  size_t n_same_top_ = 0;
  std::vector<float> klds_;
  std::vector<float> p_diffs_;
};

// The value below which `fraction` of the ascending values lie, between neighbours linearly;
// `sorted` is not empty.
[[nodiscard]] double percentile(std::span<const float> sorted, double fraction);

}  // namespace godwit::apps
