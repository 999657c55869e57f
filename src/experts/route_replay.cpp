#include "experts/route_replay.h"

#include <cstddef>
#include <optional>

namespace godwit::experts {

Result<RouteReplay> RouteReplay::create(const RouteTrace& trace, Shape shape) {
  const TraceShape found = trace.shape();
  if (found.n_layers != shape.n_layers || found.n_experts != shape.n_experts) {
    return fail("route trace: it has {} layers of {} experts, the model {} of {}", found.n_layers,
                found.n_experts, shape.n_layers, shape.n_experts);
  }
  if (trace.n_tokens() == 0) return fail("route trace: it has no tokens");
  RouteReplay replay;
  replay.n_layers_ = shape.n_layers;
  replay.choices_.resize(trace.n_tokens() * shape.n_layers);
  size_t first = 0;  // choice of the event's token
  std::optional<uint64_t> token;
  for (const RouteTrace::Event& event : trace.events()) {
    if (token && event.token != *token) first += shape.n_layers;
    token = event.token;
    if (event.n_experts < shape.n_used) {
      return fail("route trace: token {} has {} experts in layer {}, the model uses {}",
                  event.token, event.n_experts, event.layer, shape.n_used);
    }
    replay.choices_[first + event.layer] = trace.experts(event).first(shape.n_used);
  }
  for (size_t i = 0; i < replay.choices_.size(); ++i) {
    if (!replay.choices_[i].empty()) continue;
    return fail("route trace: token {} of {} has no experts in layer {}", i / shape.n_layers,
                trace.n_tokens(), i % shape.n_layers);
  }
  return replay;
}

std::span<const uint32_t> RouteReplay::experts(uint64_t token, uint32_t layer) const {
  const uint64_t n_tokens = choices_.size() / n_layers_;
  return choices_[token % n_tokens * n_layers_ + layer];
}

}  // namespace godwit::experts
