#include "engine/mtp_head.h"

#include <algorithm>
#include <cmath>

namespace godwit::engine {
namespace {

using program::Row;
using program::StepList;

PredictedToken likeliest(std::span<const float> logits) {
  const auto top = std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - static_cast<double>(*top));
  }
  return {.token = {static_cast<int32_t>(top - logits.begin())},
          .probability = static_cast<float>(1.0 / sum)};
}

}  // namespace

void MtpHead::note_run(size_t first, size_t n) {
  first_hidden_ = first;
  n_hidden_ = n;
}

// Rows of the positions whose hidden states are there, each with the token after it.
std::vector<Row> MtpHead::pending(std::span<const TokenId> tokens, TokenId next) const {
  std::vector<Row> rows;
  const size_t end = first_hidden_ + n_hidden_;
  // A timeline that was cut before them, or goes on elsewhere, has no use for them.
  if (tokens.size() > end) return rows;
  for (size_t i = first_hidden_; i < tokens.size(); ++i) {
    rows.push_back({.token = i + 1 < tokens.size() ? tokens[i + 1] : next,
                    .position = {static_cast<int32_t>(i)}});
  }
  return rows;
}

Status MtpHead::catch_up(const MtpPlace& place, std::span<const TokenId> tokens, TokenId next) {
  const std::vector<Row> rows = pending(tokens, next);
  forget();
  if (rows.empty()) return {};
  return place.backend.run(place.context, rows, {0, place.program.mtp.size(), StepList::kMtp});
}

Result<std::vector<PredictedToken>> MtpHead::predict(const MtpPlace& place,
                                                     std::span<const TokenId> tokens, TokenId next,
                                                     const MtpRequest& request) {
  std::vector<PredictedToken> found;
  std::vector<Row> rows = pending(tokens, next);
  forget();
  if (rows.empty() || request.n == 0) return found;
  const size_t dim = place.program.dim;
  std::vector<float> hidden;
  for (size_t begin = 0; true; begin = 1) {
    rows.back().wants_logits = true;
    const Status ran =
        place.backend.run(place.context, rows, {begin, place.program.mtp.size(), StepList::kMtp});
    if (!ran) return fail(ran.error());
    const PredictedToken best = likeliest(place.backend.logits(place.context));
    if (best.probability < request.min_probability) return found;
    found.push_back(best);
    const Position last = rows.back().position;
    if (found.size() == request.n || std::cmp_equal(last.value + 1, place.n_context)) return found;
    // The head's own hidden state of the last row goes on as that of the first.
    hidden.resize(rows.size() * dim);
    place.backend.read(place.context, place.program.mtp_hidden, hidden);
    place.backend.write(place.context, place.program.mtp_hidden, std::span(hidden).last(dim));
    rows = {{.token = best.token, .position = {last.value + 1}}};
  }
}

}  // namespace godwit::engine
