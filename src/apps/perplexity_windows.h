// Which tokens of a text are scored in which context. llama-perplexity's two ways: windows of
// n_ctx tokens side by side, the second half of each scored; or, with a stride, longer windows
// that overlap, the last `stride` predictions of each scored. Pure arithmetic on counts.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct WindowRequest {
  size_t n_tokens = 0;
  size_t n_ctx = 512;
  size_t stride = 0;      // 0: side by side
  int64_t n_chunks = -1;  // at most so many; below 0: all
};

// The window is tokens [begin, begin + length). The logits after its position p predict its token
// p + 1; positions [first, length - 1) are scored.
struct Window {
  size_t begin = 0;
  size_t length = 0;
  size_t first = 0;
  bool begins_with_bos = false;  // BOS takes the first token's place, if the model has it

  [[nodiscard]] size_t n_scored() const { return length - 1 - first; }
};

// Positions of a window: n_ctx, or with a stride what llama-perplexity makes of the two.
[[nodiscard]] size_t window_length(size_t n_ctx, size_t stride);
// Scored positions of a plain window of n_ctx tokens.
[[nodiscard]] constexpr size_t plain_scored(size_t n_ctx) { return n_ctx - 1 - n_ctx / 2; }

// Errors: too few tokens, a context of fewer than 4 tokens, a stride that leaves no context.
[[nodiscard]] Result<std::vector<Window>> plan_windows(const WindowRequest& request);

}  // namespace godwit::apps
