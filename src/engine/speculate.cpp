#include "engine/speculate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/log.h"
#include "program/traffic.h"

namespace godwit::engine {
namespace {

using Clock = std::chrono::steady_clock;

// The head's drafts all rest on the same; the policy knows them by this.
constexpr size_t kHeadMatch = DraftLookup::kMinMatch - 1;
// While its drafts do not pay, every so many calls a short one is made and only watched.
constexpr size_t kProbeEvery = 32;
constexpr size_t kProbeTokens = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

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
  if (session.state_shape().fixed_bytes > 0) {
    settings_.max_draft =
        std::min(settings_.max_draft, session.engine().settings().max_tentative_rows);
  }
  if (settings_.max_draft > 0 && !session.runs_groups_alike()) {
    log::warn(
        "no drafts: this backend gives a token other bits by itself than in a group, so that they "
        "could change the text (GODWIT_CUDA_EXECUTOR=stepwise does not)");
    settings_.max_draft = 0;
  }
  if (settings_.max_draft > 0 && settings_.drafter == Drafter::kLookup && !settings_.source) {
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
Result<std::vector<TokenId>> Speculation::drafted(size_t n_after) {
  std::vector<TokenId> verified;
  const size_t room = session_->engine().plan().n_context - tokens_.size();
  const size_t n_max = std::min({settings_.max_draft, n_after, room});
  if (n_max == 0) return verified;
  Result<Proposal> proposal =
      settings_.drafter == Drafter::kOwnHead ? predicted(n_max) : looked_up(n_max);
  if (!proposal) return fail(proposal.error());
  Draft& draft = proposal->draft;
  size_t n = std::min(proposal->n_verified, draft.tokens.size());
  if (n < settings_.min_draft) n = 0;
  verified.assign(draft.tokens.begin(), draft.tokens.begin() + static_cast<std::ptrdiff_t>(n));
  // One that is only watched goes on being watched to its end, or nothing would be learnt of more
  // than first tokens while nothing is verified.
  if (n > 0 || trial_done_ == trial_.tokens.size()) {
    trial_ = std::move(draft);
    trial_done_ = 0;
  }
  return verified;
}

Result<Speculation::Proposal> Speculation::looked_up(size_t n_max) {
  Draft draft = settings_.source(tokens_, n_max);
  const auto n_vocab = static_cast<int64_t>(session_->engine().program().n_vocab);
  const auto foreign = std::ranges::find_if(
      draft.tokens, [&](TokenId t) { return t.value < 0 || t.value >= n_vocab; });
  draft.tokens.erase(foreign, draft.tokens.end());
  if (draft.tokens.size() > n_max) draft.tokens.resize(n_max);
  size_t n = draft.tokens.size();
  if (settings_.pace == DraftPace::kWherePays) n = policy_.n_worth(draft.match_length, n);
  return Proposal{.draft = std::move(draft), .n_verified = n};
}

// Drafting costs here, so that how much is worth it is asked before.
Result<Speculation::Proposal> Speculation::predicted(size_t n_max) {
  size_t n = n_max;
  bool only_watched = false;
  if (settings_.pace == DraftPace::kWherePays) {
    n = policy_.n_worth(kHeadMatch, n_max);
    only_watched = n == 0;
    n_idle_ = only_watched ? n_idle_ + 1 : 0;
    if (only_watched && n_idle_ % kProbeEvery != 0) return Proposal{};
    if (only_watched) n = std::min(kProbeTokens, n_max);
  }
  const size_t n_rows = tokens_.size() - 1 - first_row_;
  const Clock::time_point start = Clock::now();
  const Result<std::vector<PredictedToken>> found =
      session_->predict(tokens_.back(), {.n = n, .min_probability = settings_.min_probability});
  if (!found) return fail(found.error());
  Proposal proposal;
  proposal.draft.match_length = kHeadMatch;
  for (const PredictedToken& one : *found) proposal.draft.tokens.push_back(one.token);
  proposal.n_verified = only_watched ? 0 : found->size();
  const double taken = seconds_since(start);
  policy_.learn_draft_cost(found->size(), taken);
  count_head(n_rows, found->size(), taken);
  return proposal;
}

// Where nothing was predicted, so that what it costs is not taken for a cost of the model.
Status Speculation::keep_head_up(TokenId token) {
  if (settings_.drafter != Drafter::kOwnHead || settings_.max_draft == 0) return {};
  const Clock::time_point start = Clock::now();
  Status done = session_->catch_up(token);
  count_head(0, 0, seconds_since(start));
  return done;
}

void Speculation::count_head(size_t n_rows, size_t n_passes, double seconds) {
  stats_.seconds += seconds;
  stats_.draft_seconds += seconds;
  const Engine& engine = session_->engine();
  for (size_t i = 0; i < n_passes; ++i) {
    stats_.draft_traffic_bytes +=
        program::traffic_of(engine.program().mtp, {.position = tokens_.size() + i,
                                                   .n_rows = i == 0 ? n_rows : 1,
                                                   .k_type = engine.settings().k_type,
                                                   .v_type = engine.settings().v_type})
            .total();
  }
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
    const Result<std::vector<TokenId>> draft = drafted(n_after);
    if (!draft) return fail(draft.error());
    rows.insert(rows.end(), draft->begin(), draft->end());
  }
  if (Status s = keep_head_up(token); !s) return fail(s.error());

  const Clock::time_point start = Clock::now();
  if (Status s = session_->append(rows); !s) {
    tokens_.pop_back();
    return fail(s.error());
  }
  const double taken = seconds_since(start);
  first_row_ = tokens_.size() - 1;
  policy_.learn_cost(rows.size(), taken);
  stats_.seconds += taken;
  if (rows.size() == 1) {
    ++stats_.n_single_calls;
    stats_.single_seconds += taken;
  } else {
    ++stats_.n_calls;
    stats_.n_drafted += rows.size() - 1;
  }
  return rows.size();
}

void Speculation::finish() { session_->truncate(tokens_.size()); }

}  // namespace godwit::engine
