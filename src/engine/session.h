// One mutable timeline over an Engine: the tokens so far and their KV. A caller states what the
// timeline shall be; the session computes only what it does not have yet.
//
// Same tokens, same bits: a backend's results do not depend on how rows are grouped into calls
// (backend.h), so positions computed for a prompt and positions that generation appended are kept
// alike, and what is kept never changes a text (docs/NUMERICS.md). Where a model's state has a
// fixed part (backend/state.h), a timeline can only be continued, or returned to where a snapshot
// was taken.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/engine.h"
#include "engine/mtp_head.h"
#include "engine/prefix_tree.h"

namespace godwit::engine {

// A timeline at one moment, apart from its session: kept as long as one likes, restored into this
// session or another of the same engine.
struct Snapshot {
  std::vector<TokenId> tokens;
  std::vector<std::byte> positions;
  std::vector<std::byte> fixed;
};

class Session {
 public:
  Session(Engine& engine, backend::ContextId context);
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  // Makes the timeline exactly `tokens` (not empty) and computes the logits after the last one.
  // `progress` gets (done, total) prompt tokens after each chunk and returns whether to go on;
  // a stopped prompt is an error and leaves the finished chunks usable. Errors: more tokens than
  // the context holds, a token outside the vocabulary.
  [[nodiscard]] Status set_prompt(std::span<const TokenId> tokens,
                                  const std::function<bool(size_t, size_t)>& progress);
  // Makes the timeline exactly `tokens`, all of them computed anew, and hands out the logits after
  // every position from `first` on, in order: sink(position of the first row, [n, n_vocab]), with
  // n at most the engine's max_logit_rows. An error of the sink ends it. Errors else: as
  // set_prompt.
  using LogitSink = std::function<Status(size_t, std::span<const float>)>;
  [[nodiscard]] Status for_each_logits(std::span<const TokenId> tokens, size_t first,
                                       const LogitSink& sink);
  // Appends one token and computes the logits after it. Errors: the context is full.
  [[nodiscard]] Status append(TokenId token);
  // Appends tokens (one to the engine's max_logit_rows) in one call and computes the logits after
  // each: logits() is then [n, n_vocab]. Where there is a fixed part, at most max_tentative_rows
  // after the first; these can be taken back. Errors: the context does not hold them.
  [[nodiscard]] Status append(std::span<const TokenId> tokens);
  // Forgets the tokens after the first `n_tokens`. Fewer than there are: only where every position
  // can be returned to (no fixed_bytes), or of the last append() all but its first. logits() stays
  // what the last call computed.
  void truncate(size_t n_tokens);
  // Up to request.n tokens that the model's own head predicts to follow `next`, the token that is
  // to be appended; none without such a head. logits() is then worthless. Errors: as append().
  [[nodiscard]] Result<std::vector<PredictedToken>> predict(TokenId next,
                                                            const MtpRequest& request);
  // What append(next) begins with where the model has such a head, so that it can be timed apart.
  [[nodiscard]] Status catch_up(TokenId next);
  // Forgets everything; a tree does not.
  void reset();

  // From now on what this session is about to give up goes into `tree`, and set_prompt() looks
  // there for what it lacks. The tree was made with tree_settings() of a session of this engine,
  // and outlives it. Null: none.
  void use_tree(PrefixTree* tree) { tree_ = tree; }
  [[nodiscard]] PrefixTreeSettings tree_settings(uint64_t budget_bytes) const;
  // Call when a turn ends, so that the next can begin there again. Does nothing where every
  // position can be returned to anyway.
  void end_turn();

  [[nodiscard]] Snapshot snapshot() const;
  // Makes the timeline what was saved of this engine's. There are no logits until the next call
  // that computes.
  void restore(const Snapshot& snapshot);
  void restore(std::span<const TokenId> tokens, backend::StateSource state);

  [[nodiscard]] backend::StateShape state_shape() const;
  // Whether drafts can be verified here without changing what is sampled (backend.h).
  [[nodiscard]] bool runs_groups_alike() const;
  void export_state(backend::PositionRange range, backend::StateTarget to) const;

  // Logits after the last token, [n_vocab]; valid until the next call that computes.
  [[nodiscard]] std::span<const float> logits() const;
  [[nodiscard]] std::span<const TokenId> tokens() const { return tokens_; }
  // Tokens that the last set_prompt() found already computed.
  [[nodiscard]] size_t n_reused() const { return n_reused_; }
  // Those of them that came from the tree.
  [[nodiscard]] size_t n_from_tree() const { return n_from_tree_; }
  [[nodiscard]] Engine& engine() const { return *engine_; }
  [[nodiscard]] backend::ContextId context() const { return context_; }

 private:
  [[nodiscard]] Status check_prompt(std::span<const TokenId> tokens) const;
  [[nodiscard]] size_t reusable(std::span<const TokenId> tokens) const;
  [[nodiscard]] size_t return_to_tree(std::span<const TokenId> tokens, size_t kept);
  void store();
  // From which of the rows on logits are wanted, and rows may be taken back.
  struct RunRows {
    size_t first_wanted = 0;
    size_t first_tentative = 0;
  };
  [[nodiscard]] Status run(std::span<const TokenId> tokens, RunRows wanted);
  [[nodiscard]] Status run_steps(std::span<const program::Row> rows, program::StepRange steps);
  void give_up();
  void release_lookups(size_t n_rows);
  [[nodiscard]] MtpPlace mtp_place() const;

  Engine* engine_;  // null when moved from
  backend::ContextId context_;
  std::vector<TokenId> tokens_;     // all of them computed; room for the whole context
  std::vector<program::Row> rows_;  // of the call at hand, so that a step asks for no memory
  // Where a fixed part cannot be returned to everywhere: the fewest tokens it can be cut to.
  size_t n_settled_ = 0;
  MtpHead mtp_;
  size_t n_reused_ = 0;
  size_t n_from_tree_ = 0;
  size_t n_looked_up_ = 0;  // rows since the file's pages were given back
  PrefixTree* tree_ = nullptr;
};

}  // namespace godwit::engine
