// What rows of logits say of the tokens that followed: the log-likelihood, and how far the whole
// distribution lies from a base model's. Rows are shared out to a pool's threads; sums are in
// double and in an order that no number of threads changes. Called by `perplexity`.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/logits_file.h"
#include "base/result.h"
#include "base/types.h"
#include "os/cpu_features.h"
#include "os/thread_pool.h"

namespace godwit::apps {

struct TokenScore {
  double nll = 0;      // -ln p(token)
  double log_sum = 0;  // ln(sum(exp(logits)))
};

// Beside a base's distribution, p_base.
struct DivergenceScore {
  double nll = 0;
  double nll_base = 0;
  double kld = 0;     // KL(p_base || p)
  double p_diff = 0;  // p(token) - p_base(token)
  bool same_top = false;
};

class TokenScorer {
 public:
  TokenScorer(size_t n_threads, Isa isa, size_t n_vocab);

  // logits: [targets.size(), n_vocab]; targets: the token that followed each row.
  [[nodiscard]] std::vector<TokenScore> score(std::span<const float> logits,
                                              std::span<const TokenId> targets);
  // The same with rows [first_row, ...) of the base's chunk. Errors: as LogitsFile::row.
  struct BaseRows {
    const LogitsFile& file;
    size_t chunk = 0;
    size_t first_row = 0;
  };
  [[nodiscard]] Result<std::vector<DivergenceScore>> compare(std::span<const float> logits,
                                                             std::span<const TokenId> targets,
                                                             const BaseRows& base);
  // Rows in the file's form, one after the other, valid until the next call.
  [[nodiscard]] std::span<const std::byte> pack(std::span<const float> logits,
                                                std::span<const TokenScore> scores);

 private:
  // f(row, thread) for every row, on all threads.
  template <class F>
  void for_rows(size_t n_rows, F f);
  [[nodiscard]] std::span<float> scratch(size_t thread);
  [[nodiscard]] TokenScore score_row(std::span<const float> row, TokenId target, size_t thread);
  [[nodiscard]] DivergenceScore compare_row(std::span<const float> row, TokenId target,
                                            const PackedLogProbs& base, size_t thread);

  ThreadPool pool_;
  Isa isa_;
  size_t n_vocab_;
  std::vector<float> scratch_;  // [threads, 2, n_vocab]
  std::vector<std::byte> packed_;
};

}  // namespace godwit::apps
