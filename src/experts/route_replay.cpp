#include "experts/route_replay.h"

#include <algorithm>
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
  size_t first = 0;  // choice of the event's token
  std::optional<uint64_t> token;
  for (const RouteTrace::Event& event : trace.events()) {
    if (event.token != token) {
      // A token that lacks a layer ends it here, so that memory grows with the lines of the trace.
      if (Status s = replay.check_last_token(); !s) return fail(s.error());
      first = replay.choices_.size();
      replay.choices_.resize(first + shape.n_layers);
    }
    token = event.token;
    if (event.n_experts < shape.n_used) {
      return fail("route trace: token {} has {} experts in layer {}, the model uses {}",
                  event.token, event.n_experts, event.layer, shape.n_used);
    }
    replay.choices_[first + event.layer] = trace.experts(event).first(shape.n_used);
  }
  if (Status s = replay.check_last_token(); !s) return fail(s.error());
  return replay;
}

// Whether the token that was added last, if any, has experts in every layer.
Status RouteReplay::check_last_token() const {
  if (choices_.empty()) return {};
  const auto layers = std::span(choices_).last(n_layers_);
  const auto without = std::ranges::find_if(layers, &std::span<const uint32_t>::empty);
  if (without == layers.end()) return {};
  return fail("route trace: token {} of it has no experts in layer {}",
              choices_.size() / n_layers_ - 1, without - layers.begin());
}

std::span<const uint32_t> RouteReplay::experts(uint64_t token, uint32_t layer) const {
  const uint64_t n_tokens = choices_.size() / n_layers_;
  return choices_[token % n_tokens * n_layers_ + layer];
}

}  // namespace godwit::experts
