#include "engine/session.h"

#include <algorithm>
#include <utility>

namespace godwit::engine {

Session::Session(Session&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      context_(other.context_),
      tokens_(std::move(other.tokens_)),
      n_reused_(other.n_reused_) {}

Session& Session::operator=(Session&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(context_, other.context_);
  std::swap(tokens_, other.tokens_);
  std::swap(n_reused_, other.n_reused_);
  return *this;
}

Session::~Session() {
  if (engine_ != nullptr) engine_->backend().release_context(context_);
}

void Session::reset() {
  tokens_.clear();
  n_reused_ = 0;
}

Status Session::set_prompt(std::span<const TokenId> tokens,
                           const std::function<bool(size_t, size_t)>& progress) {
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

  // The last token always runs, for its logits.
  const size_t limit = std::min(tokens_.size(), tokens.size() - 1);
  const auto differs = std::mismatch(
      tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(limit), tokens_.begin());
  size_t done = static_cast<size_t>(differs.first - tokens.begin());
  n_reused_ = done;
  tokens_.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(done));

  const size_t chunk = engine_->settings().chunk_tokens;
  while (done < tokens.size()) {
    // Chunks end at absolute multiples of the chunk length.
    const size_t n = std::min(chunk - done % chunk, tokens.size() - done);
    const std::span<const TokenId> part = tokens.subspan(done, n);
    run(part, done, done + n == tokens.size());
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    done += n;
    if (progress && !progress(done, tokens.size()) && done < tokens.size()) {
      return fail("stopped after {} of {} prompt tokens", done, tokens.size());
    }
  }
  return {};
}

Status Session::append(TokenId token) {
  if (tokens_.size() >= engine_->plan().n_context) {
    return fail("the context of {} positions is full", engine_->plan().n_context);
  }
  run({&token, 1}, tokens_.size(), true);
  tokens_.push_back(token);
  return {};
}

void Session::run(std::span<const TokenId> tokens, size_t first_position, bool wants_logits) {
  std::vector<program::Row> rows;
  rows.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back({.token = tokens[i],
                    .position = {static_cast<int32_t>(first_position + i)},
                    .wants_logits = wants_logits && i + 1 == tokens.size()});
  }
  engine_->backend().run(context_, rows, {0, engine_->program().main.size()});
}

std::span<const float> Session::logits() const { return engine_->backend().logits(context_); }

}  // namespace godwit::engine
