// How near the routers of a mixture of experts came to another choice: what tells a tie of routers
// from a mistake where two engines choose different experts (tests/conformance/qwen3next.py).
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "engine/engine.h"

namespace godwit::apps {

// For each of the last n_last tokens the smallest difference, over all layers, between the router's
// logits of the last expert chosen and of the first one not chosen, in double precision from the
// backend's own activations. Infinite for a model without routers. Errors: memory; what the backend
// reports. Precondition: the tokens are the vocabulary's, 1 <= n_last <= tokens.size().
[[nodiscard]] Result<std::vector<double>> router_gaps(const engine::Engine& engine,
                                                      std::span<const TokenId> tokens,
                                                      size_t n_last);

}  // namespace godwit::apps
