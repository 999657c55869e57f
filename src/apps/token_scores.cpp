#include "apps/token_scores.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/vector_ops.h"
#include "base/check.h"

namespace godwit::apps {
namespace {

// Less likely tokens of the base do not count: the file has rounded them up to this.
constexpr float kLeastLogProb = -16.0f;

size_t index_of_largest(std::span<const float> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// Four sums, so that additions need not wait for each other.
double sum(std::span<const float> values) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    for (size_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(values[i + k]);
  }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

TokenScorer::TokenScorer(size_t n_threads, Isa isa, size_t n_vocab)
    : pool_(n_threads), isa_(isa), n_vocab_(n_vocab), scratch_(pool_.size() * 2 * n_vocab) {}

template <class F>
void TokenScorer::for_rows(size_t n_rows, F f) {
  pool_.run([&](size_t thread) {
    for (size_t row = thread; row < n_rows; row += pool_.size()) f(row, thread);
  });
}

std::span<float> TokenScorer::scratch(size_t thread) {
  return std::span(scratch_).subspan(thread * 2 * n_vocab_, 2 * n_vocab_);
}

TokenScore TokenScorer::score_row(std::span<const float> row, TokenId target, size_t thread) {
  const std::span<float> e = scratch(thread).first(n_vocab_);
  const float most = *std::max_element(row.begin(), row.end());
  for (size_t i = 0; i < n_vocab_; ++i) e[i] = row[i] - most;
  cpu::vector_ops(isa_).exp(e.data(), e.data(), n_vocab_);
  const double log_sum = static_cast<double>(most) + std::log(sum(e));
  const double logit = static_cast<double>(row[static_cast<size_t>(target.value)]);
  return {.nll = log_sum - logit, .log_sum = log_sum};
}

std::vector<TokenScore> TokenScorer::score(std::span<const float> logits,
                                           std::span<const TokenId> targets) {
  check(logits.size() == targets.size() * n_vocab_, "a row of logits for each token");
  std::vector<TokenScore> scores(targets.size());
  for_rows(targets.size(), [&](size_t row, size_t thread) {
    scores[row] = score_row(logits.subspan(row * n_vocab_, n_vocab_), targets[row], thread);
  });
  return scores;
}

DivergenceScore TokenScorer::compare_row(std::span<const float> row, TokenId target,
                                         const PackedLogProbs& base, size_t thread) {
  const TokenScore score = score_row(row, target, thread);
  const std::span<float> log_p = scratch(thread).first(n_vocab_);
  const std::span<float> p = scratch(thread).subspan(n_vocab_, n_vocab_);
  base.unpack(log_p);
  cpu::vector_ops(isa_).exp(log_p.data(), p.data(), n_vocab_);
  double kld = 0;
  for (size_t i = 0; i < n_vocab_; ++i) {
    if (log_p[i] <= kLeastLogProb) continue;
    const double difference =
        static_cast<double>(log_p[i]) - static_cast<double>(row[i]) + score.log_sum;
    kld += static_cast<double>(p[i]) * difference;
  }
  const double nll_base = -static_cast<double>(log_p[static_cast<size_t>(target.value)]);
  return {.nll = score.nll,
          .nll_base = nll_base,
          .kld = kld,
          .p_diff = std::exp(-score.nll) - std::exp(-nll_base),
          .same_top = index_of_largest(row) == index_of_largest(log_p)};
}

Result<std::vector<DivergenceScore>> TokenScorer::compare(std::span<const float> logits,
                                                          std::span<const TokenId> targets,
                                                          const BaseRows& base) {
  check(logits.size() == targets.size() * n_vocab_, "a row of logits for each token");
  std::vector<PackedLogProbs> rows;
  for (size_t row = 0; row < targets.size(); ++row) {
    Result<PackedLogProbs> found = base.file.row(base.chunk, base.first_row + row);
    if (!found) return fail(std::move(found).error());
    rows.push_back(*found);
  }
  std::vector<DivergenceScore> scores(targets.size());
  for_rows(targets.size(), [&](size_t row, size_t thread) {
    scores[row] =
        compare_row(logits.subspan(row * n_vocab_, n_vocab_), targets[row], rows[row], thread);
  });
  return scores;
}

std::span<const std::byte> TokenScorer::pack(std::span<const float> logits,
                                             std::span<const TokenScore> scores) {
  const LogitsShape shape{.n_ctx = 0, .n_vocab = static_cast<uint32_t>(n_vocab_), .n_chunks = 0};
  const size_t bytes = shape.row_bytes();
  packed_.resize(scores.size() * bytes);
  for_rows(scores.size(), [&](size_t row, size_t) {
    pack_log_probs(logits.subspan(row * n_vocab_, n_vocab_), scores[row].log_sum,
                   std::span(packed_).subspan(row * bytes, bytes));
  });
  return packed_;
}

}  // namespace godwit::apps
