// Plays a trace (route_trace.h) back in place of a router: which experts the layers of the n-th
// token choose, from the beginning again where the trace ends. So budgets can be compared under
// routing of a known skew by models whose own is noise. Called by the cpu backend for `bench
// --route-trace`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "experts/route_trace.h"

namespace godwit::experts {

class RouteReplay {
 public:
  struct Shape {
    uint32_t n_layers = 0;   // with experts
    uint32_t n_experts = 0;  // of each
    uint32_t n_used = 0;     // by a token
  };
  // `trace` must outlive it. Errors: a trace of another shape, or a token without a layer.
  [[nodiscard]] static Result<RouteReplay> create(const RouteTrace& trace, Shape shape);

  // The n_used experts of a layer.
  [[nodiscard]] std::span<const uint32_t> experts(uint64_t token, uint32_t layer) const;

 private:
  [[nodiscard]] Status check_last_token() const;

  std::vector<std::span<const uint32_t>> choices_;  // [n_tokens, n_layers]
  uint32_t n_layers_ = 0;
};

}  // namespace godwit::experts
