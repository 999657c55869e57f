// Exact speculative decoding: a session that, asked for the logits after one token, may compute
// those after the tokens drafted to follow it in the same call, which reads weights and KV once.
// The caller samples every token as without drafts, from the same bits (docs/NUMERICS.md); while it
// happens to sample what was drafted, its next logits are there already. A token drafted wrongly is
// forgotten with its KV, and with what it did to recurrent states. So no draft can change a text,
// greedy or sampled; only how soon it comes. Called by engine/generate.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "engine/draft_lookup.h"
#include "engine/draft_policy.h"
#include "engine/session.h"

namespace godwit::engine {

enum class DraftPace : uint8_t { kWherePays, kAlways };

// Where drafts come from: what followed the last tokens before (engine/draft_lookup.h), or the head
// that predicts further tokens (engine/mtp_head.h), which the engine must have loaded.
enum class Drafter : uint8_t { kLookup, kOwnHead };

// Up to n tokens to follow the history. Anything may be proposed.
using DraftSource = std::function<Draft(std::span<const TokenId> history, size_t n)>;

struct SpeculationSettings {
  // Tokens; 0: no speculation. Also at most the engine's max_logit_rows - 1, and with recurrent
  // states its max_tentative_rows.
  size_t max_draft = 0;
  size_t min_draft = 0;  // shorter drafts are not verified
  DraftPace pace = DraftPace::kWherePays;
  Drafter drafter = Drafter::kLookup;
  float min_probability = 0.0f;  // by the head, of a token worth drafting
  DraftSource source = {};       // in place of the lookup
};

struct SpeculationStats {
  size_t n_drafted = 0;   // tokens that were verified
  size_t n_accepted = 0;  // of them, those that were sampled
  size_t n_calls = 0;     // that verified a draft
  double seconds = 0;     // in all calls, and in drafting
  // Calls of one row, what one token costs without drafts.
  size_t n_single_calls = 0;
  double single_seconds = 0;
  // What the head that drafts took, and read by program/traffic.h.
  double draft_seconds = 0;
  uint64_t draft_traffic_bytes = 0;

  // Speed of the calls beside what calls of one row would have been; 1 where none was made.
  [[nodiscard]] double gain() const;
};

class Speculation {
 public:
  // After the session's set_prompt(). The session must not be used otherwise until finish().
  Speculation(Session& session, SpeculationSettings settings);

  // As the session's own would be without drafts.
  [[nodiscard]] std::span<const TokenId> tokens() const { return tokens_; }
  [[nodiscard]] std::span<const float> logits() const;  // after the last of tokens(), [n_vocab]

  // Appends a token and has the logits after it. Returns the rows it computed: 0 where the token
  // was the drafted one. The caller will append at most `n_after` more. Errors: as
  // Session::append.
  [[nodiscard]] Result<size_t> append(TokenId token, size_t n_after);
  // Leaves the session as it would be without drafts.
  void finish();

  [[nodiscard]] const SpeculationStats& stats() const { return stats_; }

 private:
  // What to watch, and how much of it to verify.
  struct Proposal {
    Draft draft;
    size_t n_verified = 0;
  };
  void judge(TokenId token);
  [[nodiscard]] Result<std::vector<TokenId>> drafted(size_t n_after);
  [[nodiscard]] Result<Proposal> looked_up(size_t n_max);
  [[nodiscard]] Result<Proposal> predicted(size_t n_max);
  [[nodiscard]] Status keep_head_up(TokenId token);
  void count_head(size_t n_rows, size_t n_passes, double seconds);

  Session* session_;
  SpeculationSettings settings_;
  DraftPolicy policy_;
  SpeculationStats stats_;
  std::vector<TokenId> tokens_;  // the session has these, and maybe drafted ones after them
  size_t first_row_;             // index of the token that row 0 of the logits follows

  // The draft being judged by the tokens that come, verified or not; done at its end.
  Draft trial_;
  size_t trial_done_ = 0;
  size_t n_idle_ = 0;  // calls in a row that drafting did not promise to pay for
};

}  // namespace godwit::engine
