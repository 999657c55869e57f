// The head that predicts one token further (program::Program::mtp) beside a session's timeline: a
// position's hidden state and the token after it give the token after next. It has KV of its own,
// which is filled as the timeline grows; hidden states exist only until the next run of the model,
// so whoever runs it calls catch_up() before. What it predicts is a guess, so that a gap in its KV
// (after a restored state, whose last hidden state is gone) costs acceptance, never a token.
// Called by engine/session.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "base/types.h"
#include "program/program.h"

namespace godwit::engine {

struct PredictedToken {
  TokenId token;
  float probability = 0.0f;  // by the head
};

// Whose head it is; the program has one.
struct MtpPlace {
  const program::Program& program;
  backend::Backend& backend;
  backend::ContextId context;
  uint64_t n_context = 0;
};

struct MtpRequest {
  size_t n = 0;                  // tokens at most
  float min_probability = 0.0f;  // it ends before one below this
};

class MtpHead {
 public:
  // The last run of the model left hidden states of positions [first, first + n).
  void note_run(size_t first, size_t n);
  void forget() { n_hidden_ = 0; }

  // Brings its KV up to the end of `tokens`; `next` is the token that follows them. Errors: as
  // Backend::run.
  [[nodiscard]] Status catch_up(const MtpPlace& place, std::span<const TokenId> tokens,
                                TokenId next);
  // Tokens to follow `next`; none where the last hidden state is not known. Errors: as
  // Backend::run.
  [[nodiscard]] Result<std::vector<PredictedToken>> predict(const MtpPlace& place,
                                                            std::span<const TokenId> tokens,
                                                            TokenId next,
                                                            const MtpRequest& request);

 private:
  [[nodiscard]] std::vector<program::Row> pending(std::span<const TokenId> tokens,
                                                  TokenId next) const;

  size_t first_hidden_ = 0;
  size_t n_hidden_ = 0;  // 0: none, or those there are have been used
};

}  // namespace godwit::engine
