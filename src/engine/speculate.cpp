#include "engine/speculate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace godwit::engine {

double SpeculationStats::gain() const {
  if (n_single_calls == 0 || seconds <= 0) return 1.0;
  const double single = single_seconds / static_cast<double>(n_single_calls);
  const size_t n_tokens = n_single_calls + n_calls + n_accepted;
  return single * static_cast<double>(n_tokens) / seconds;
}

Speculation::Speculation(Session& session, SpeculationSettings settings)
    : session_(&session),
      settings_(std::move(settings)),
      tokens_(session.tokens().begin(), session.tokens().end()),
      first_row_(tokens_.size() - 1) {
  const size_t n_rows = session.engine().settings().max_logit_rows;
  settings_.max_draft = std::min({settings_.max_draft, n_rows - 1, DraftPolicy::kMaxDraft});
  // A wrong token could not be taken back.
  if (session.state_shape().fixed_bytes > 0) settings_.max_draft = 0;
  if (settings_.max_draft > 0 && !settings_.source) {
    const auto lookup = std::make_shared<DraftLookup>(session.engine().plan().n_context);
    settings_.source = [lookup](std::span<const TokenId> history, size_t n) {
      return lookup->propose(history, n);
    };
  }
}

std::span<const float> Speculation::logits() const {
  const size_t n_vocab = session_->engine().program().n_vocab;
  return session_->logits().subspan((tokens_.size() - 1 - first_row_) * n_vocab, n_vocab);
}

void Speculation::judge(TokenId token) {
  if (trial_done_ == trial_.tokens.size()) return;
  const bool right = trial_.tokens[trial_done_] == token;
  policy_.learn_outcome(trial_.match_length, trial_done_,
                        right ? DraftPolicy::Outcome::kRight : DraftPolicy::Outcome::kWrong);
  trial_done_ = right ? trial_done_ + 1 : trial_.tokens.size();
}

// The tokens to verify beside the last of tokens_, which is not computed yet.
std::vector<TokenId> Speculation::drafted(size_t n_after) {
  const size_t room = session_->engine().plan().n_context - tokens_.size();
  const size_t n_max = std::min({settings_.max_draft, n_after, room});
  if (n_max == 0) return {};
  Draft draft = settings_.source(tokens_, n_max);
  const auto n_vocab = static_cast<int64_t>(session_->engine().program().n_vocab);
  const auto foreign = std::ranges::find_if(
      draft.tokens, [&](TokenId t) { return t.value < 0 || t.value >= n_vocab; });
  draft.tokens.erase(foreign, draft.tokens.end());
  if (draft.tokens.size() > n_max) draft.tokens.resize(n_max);

  size_t n = draft.tokens.size();
  if (settings_.pace == DraftPace::kWherePays) n = policy_.n_worth(draft.match_length, n);
  if (n < settings_.min_draft) n = 0;
  std::vector<TokenId> verified(draft.tokens.begin(),
                                draft.tokens.begin() + static_cast<std::ptrdiff_t>(n));
  // One that is only watched goes on being watched to its end, or nothing would be learnt of more
  // than first tokens while nothing is verified.
  if (n > 0 || trial_done_ == trial_.tokens.size()) {
    trial_ = std::move(draft);
    trial_done_ = 0;
  }
  return verified;
}

Result<size_t> Speculation::append(TokenId token, size_t n_after) {
  judge(token);
  const std::span<const TokenId> known = session_->tokens();
  if (tokens_.size() < known.size() && known[tokens_.size()] == token) {
    tokens_.push_back(token);
    ++stats_.n_accepted;
    return size_t{0};
  }
  session_->truncate(tokens_.size());
  tokens_.push_back(token);
  std::vector<TokenId> rows = {token};
  // What does not fit is the session's to refuse.
  if (tokens_.size() <= session_->engine().plan().n_context) {
    const std::vector<TokenId> draft = drafted(n_after);
    rows.insert(rows.end(), draft.begin(), draft.end());
  }

  const auto start = std::chrono::steady_clock::now();
  if (Status s = session_->append(rows); !s) {
    tokens_.pop_back();
    return fail(s.error());
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  first_row_ = tokens_.size() - 1;
  policy_.learn_cost(rows.size(), taken.count());
  stats_.seconds += taken.count();
  if (rows.size() == 1) {
    ++stats_.n_single_calls;
    stats_.single_seconds += taken.count();
  } else {
    ++stats_.n_calls;
    stats_.n_drafted += rows.size() - 1;
  }
  return rows.size();
}

void Speculation::finish() { session_->truncate(tokens_.size()); }

}  // namespace godwit::engine
