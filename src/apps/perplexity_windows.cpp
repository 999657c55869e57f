#include "apps/perplexity_windows.h"

#include <algorithm>

#include "base/bits.h"

namespace godwit::apps {
namespace {

constexpr size_t kMinContext = 4;
constexpr size_t kContextStep = 256;  // upstream makes room for contexts in such steps

}  // namespace

size_t window_length(size_t n_ctx, size_t stride) {
  return stride == 0 ? n_ctx : round_up(n_ctx + stride / 2, kContextStep);
}

Result<std::vector<Window>> plan_windows(const WindowRequest& request) {
  if (request.n_ctx < kMinContext) {
    return fail("perplexity: a context of {} tokens; expected at least {} (-c)", request.n_ctx,
                kMinContext);
  }
  const size_t length = window_length(request.n_ctx, request.stride);
  if (request.stride >= length) {
    return fail("perplexity: a stride of {} leaves no context in windows of {} tokens",
                request.stride, length);
  }
  if (request.n_tokens < 2 * length) {
    return fail("perplexity: the text has {} tokens; windows of {} need at least {}",
                request.n_tokens, length, 2 * length);
  }
  const bool plain = request.stride == 0;
  size_t n = plain ? request.n_tokens / length : div_up(request.n_tokens - length, request.stride);
  if (request.n_chunks >= 0) n = std::min(n, static_cast<size_t>(request.n_chunks));
  if (n == 0) return fail("perplexity: nothing to do in 0 chunks");
  std::vector<Window> windows;
  windows.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    windows.push_back({.begin = i * (plain ? length : request.stride),
                       .length = length,
                       .first = plain ? length / 2 : length - request.stride - 1,
                       .begins_with_bos = plain});
  }
  return windows;
}

}  // namespace godwit::apps
