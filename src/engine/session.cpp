#include "engine/session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"

namespace godwit::engine {
namespace {

constexpr size_t kReleaseRows = 256;

}  // namespace

Session::Session(Engine& engine, backend::ContextId context) : engine_(&engine), context_(context) {
  tokens_.reserve(engine.plan().n_context);
}

Session::Session(Session&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      context_(other.context_),
      tokens_(std::move(other.tokens_)),
      n_settled_(other.n_settled_),
      mtp_(other.mtp_),
      n_reused_(other.n_reused_),
      n_from_tree_(other.n_from_tree_),
      tree_(other.tree_) {}

Session& Session::operator=(Session&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(context_, other.context_);
  std::swap(tokens_, other.tokens_);
  std::swap(n_settled_, other.n_settled_);
  std::swap(mtp_, other.mtp_);
  std::swap(n_reused_, other.n_reused_);
  std::swap(n_from_tree_, other.n_from_tree_);
  std::swap(tree_, other.tree_);
  return *this;
}

Session::~Session() {
  if (engine_ != nullptr) engine_->backend().release_context(context_);
}

void Session::reset() {
  store();
  tokens_.clear();
  n_settled_ = 0;
  mtp_.forget();
  n_reused_ = 0;
  n_from_tree_ = 0;
}

Status Session::check_prompt(std::span<const TokenId> tokens) const {
  if (tokens.empty()) return fail("the prompt is empty");
  const uint64_t n_context = engine_->plan().n_context;
  if (tokens.size() > n_context) {
    return fail("the prompt has {} tokens, the context holds {} (-c)", tokens.size(), n_context);
  }
  const auto n_vocab = static_cast<int64_t>(engine_->program().n_vocab);
  for (const TokenId token : tokens) {
    if (token.value < 0 || token.value >= n_vocab) {
      return fail("token {} is outside the vocabulary of {}", token.value, n_vocab);
    }
  }
  return {};
}

// How many leading tokens of a prompt the timeline has, if it can be cut there. The last token of a
// prompt always runs, for its logits.
size_t Session::reusable(std::span<const TokenId> tokens) const {
  const size_t limit = std::min(tokens_.size(), tokens.size() - 1);
  const auto differs = std::mismatch(
      tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(limit), tokens_.begin());
  const auto common = static_cast<size_t>(differs.first - tokens.begin());
  return state_shape().fixed_bytes == 0 || common >= n_settled_ ? common : 0;
}

// Brings in what the tree has beyond the `kept` tokens of the timeline; returns how many there are
// then.
size_t Session::return_to_tree(std::span<const TokenId> tokens, size_t kept) {
  if (tree_ == nullptr) return kept;
  const PrefixMatch match = tree_->find(tokens.first(tokens.size() - 1));
  if (match.n_tokens <= kept) return kept;
  backend::Backend& backend = engine_->backend();
  for (const PrefixMatch::Piece& piece : match.pieces) {
    backend.import_state(context_, piece.range, {.positions = piece.positions});
  }
  backend.import_state(context_, {0, match.n_tokens}, {.fixed = match.fixed});
  return match.n_tokens;
}

void Session::store() {
  if (tree_ == nullptr || tokens_.empty()) return;
  std::vector<std::byte> fixed(state_shape().fixed_bytes);
  export_state({0, tokens_.size()}, {.fixed = fixed});
  tree_->insert(tokens_, fixed, [this](backend::PositionRange range, std::span<std::byte> out) {
    export_state(range, {.positions = out});
  });
}

void Session::end_turn() {
  if (state_shape().fixed_bytes > 0) store();
}

PrefixTreeSettings Session::tree_settings(uint64_t budget_bytes) const {
  const backend::StateShape shape = state_shape();
  return {.budget_bytes = budget_bytes,
          .position_bytes = shape.position_bytes,
          .fixed_bytes = shape.fixed_bytes,
          .max_node_positions = engine_->settings().chunk_tokens};
}

Snapshot Session::snapshot() const {
  const backend::StateShape shape = state_shape();
  Snapshot snapshot{.tokens = tokens_,
                    .positions = std::vector<std::byte>(tokens_.size() * shape.position_bytes),
                    .fixed = std::vector<std::byte>(shape.fixed_bytes)};
  export_state({0, tokens_.size()}, {.positions = snapshot.positions, .fixed = snapshot.fixed});
  return snapshot;
}

void Session::restore(const Snapshot& snapshot) {
  restore(snapshot.tokens, {.positions = snapshot.positions, .fixed = snapshot.fixed});
}

void Session::restore(std::span<const TokenId> tokens, backend::StateSource state) {
  check(tokens.size() <= engine_->plan().n_context, "a snapshot longer than the context");
  store();
  engine_->backend().import_state(context_, {0, tokens.size()}, state);
  tokens_.assign(tokens.begin(), tokens.end());
  n_settled_ = tokens_.size();
  mtp_.forget();
  n_reused_ = 0;
  n_from_tree_ = 0;
}

backend::StateShape Session::state_shape() const {
  return engine_->backend().state_shape(context_);
}

bool Session::runs_groups_alike() const { return engine_->backend().runs_groups_alike(context_); }

void Session::export_state(backend::PositionRange range, backend::StateTarget to) const {
  engine_->backend().export_state(context_, range, to);
}

Status Session::set_prompt(std::span<const TokenId> tokens,
                           const std::function<bool(size_t, size_t)>& progress) {
  if (Status s = check_prompt(tokens); !s) return s;

  const size_t kept = reusable(tokens);
  if (kept < tokens_.size()) store();
  size_t done = return_to_tree(tokens, kept);
  n_from_tree_ = done - kept;
  n_reused_ = done;
  if (n_from_tree_ > 0) mtp_.forget();
  tokens_.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(done));
  n_settled_ = done;

  const size_t chunk = engine_->settings().chunk_tokens;
  while (done < tokens.size()) {
    // Chunks end at absolute multiples of the chunk length.
    const size_t n = std::min(chunk - done % chunk, tokens.size() - done);
    const std::span<const TokenId> part = tokens.subspan(done, n);
    const size_t first_wanted = done + n == tokens.size() ? n - 1 : n;
    if (Status s = run(part, {.first_wanted = first_wanted, .first_tentative = n}); !s) return s;
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    n_settled_ = tokens_.size();
    done += n;
    if (done % chunk == 0) end_turn();
    if (progress && !progress(done, tokens.size()) && done < tokens.size()) {
      return fail("stopped after {} of {} prompt tokens", done, tokens.size());
    }
  }
  return {};
}

Status Session::for_each_logits(std::span<const TokenId> tokens, size_t first,
                                const LogitSink& sink) {
  if (Status s = check_prompt(tokens); !s) return s;
  reset();
  const std::vector<program::Step>& steps = engine_->program().main;
  check(std::holds_alternative<program::Output>(steps.back().operation),
        "a program ends with its output");
  const size_t at_once = engine_->settings().max_logit_rows;
  const size_t chunk = engine_->settings().chunk_tokens;
  std::vector<program::Row> rows;
  for (size_t done = 0; done < tokens.size(); done += rows.size()) {
    rows.clear();
    for (size_t i = done; i < std::min(tokens.size(), done + chunk); ++i) {
      rows.push_back({.token = tokens[i], .position = {static_cast<int32_t>(i)}});
    }
    // The layers see the whole chunk. What they leave is then taken to the vocabulary, the widest
    // matrix by far, some rows at a time: so many logits fit in memory, the layers' rows always do.
    if (Status s = run_steps(rows, {0, steps.size() - 1}); !s) return s;
    for (size_t at = std::max(first, done); at < done + rows.size(); at += at_once) {
      const size_t end = std::min(at + at_once, done + rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].wants_logits = done + i >= at && done + i < end;
      }
      if (Status s = run_steps(rows, {steps.size() - 1, steps.size()}); !s) return s;
      if (Status s = sink(at, logits()); !s) return s;
    }
    for (const program::Row& row : rows) tokens_.push_back(row.token);
    n_settled_ = tokens_.size();
  }
  return {};
}

Status Session::append(TokenId token) { return append(std::span<const TokenId>(&token, 1)); }

Status Session::append(std::span<const TokenId> tokens) {
  const uint64_t n_context = engine_->plan().n_context;
  if (tokens_.size() >= n_context) {
    return fail("the context of {} positions is full", n_context);
  }
  if (tokens.size() > n_context - tokens_.size()) {
    return fail("{} tokens after {} do not fit the context of {} positions", tokens.size(),
                tokens_.size(), n_context);
  }
  if (Status s = run(tokens, {.first_wanted = 0, .first_tentative = 1}); !s) return s;
  n_settled_ = tokens_.size() + 1;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return {};
}

void Session::truncate(size_t n_tokens) {
  check(n_tokens <= tokens_.size(), "a timeline cut behind its end");
  check(n_tokens >= n_settled_ || state_shape().fixed_bytes == 0,
        "a timeline cut where its state is not known");
  tokens_.resize(n_tokens);
  n_settled_ = std::min(n_settled_, n_tokens);
}

MtpPlace Session::mtp_place() const {
  return {.program = engine_->program(),
          .backend = engine_->backend(),
          .context = context_,
          .n_context = engine_->plan().n_context};
}

Result<std::vector<PredictedToken>> Session::predict(TokenId next, const MtpRequest& request) {
  if (engine_->program().mtp.empty()) return std::vector<PredictedToken>{};
  Result<std::vector<PredictedToken>> found = mtp_.predict(mtp_place(), tokens_, next, request);
  if (!found) give_up();
  return found;
}

Status Session::catch_up(TokenId next) {
  if (engine_->program().mtp.empty()) return {};
  Status done = mtp_.catch_up(mtp_place(), tokens_, next);
  if (!done) give_up();
  return done;
}

// Computes tokens that follow the timeline; the caller makes them part of it.
Status Session::run(std::span<const TokenId> tokens, RunRows wanted) {
  if (Status s = catch_up(tokens.front()); !s) return s;
  const size_t first_position = tokens_.size();
  rows_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows_.push_back({.token = tokens[i],
                     .position = {static_cast<int32_t>(first_position + i)},
                     .wants_logits = i >= wanted.first_wanted,
                     .tentative = i >= wanted.first_tentative});
  }
  if (Status s = run_steps(rows_, {0, engine_->program().main.size()}); !s) return s;
  mtp_.note_run(first_position, rows_.size());
  return {};
}

Status Session::run_steps(std::span<const program::Row> rows, program::StepRange steps) {
  Status ran = engine_->backend().run(context_, rows, steps);
  if (!ran) give_up();
  release_lookups(rows.size());
  return ran;
}

// Looking a token up makes pages around its row resident. They stay in the page cache; here they
// go now and then, so that what is resident is what was planned. Experts that are used where they
// are mapped stay.
void Session::release_lookups(size_t n_rows) {
  n_looked_up_ += n_rows;
  const auto& policy = engine_->settings().expert_cache;
  const bool is_mapped = policy && policy->kind == experts::CacheKind::kMapped;
  if (n_looked_up_ < kReleaseRows || is_mapped) return;
  engine_->file().discard_read();
  n_looked_up_ = 0;
}

// After a run that failed. A fixed part cannot be taken back to where it was: the next prompt
// begins anew, or at what the tree has.
void Session::give_up() {
  mtp_.forget();
  if (state_shape().fixed_bytes == 0) return;
  tokens_.clear();
  n_settled_ = 0;
}

std::span<const float> Session::logits() const { return engine_->backend().logits(context_); }

}  // namespace godwit::engine
