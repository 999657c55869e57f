#include "apps/bench/multiply_adds.h"

#include <algorithm>
#include <variant>

#include "program/access.h"

namespace godwit::apps {
namespace {

using program::WeightRef;

uint64_t of(const WeightRef& weight) { return weight.rows * weight.cols; }
uint64_t of(const std::optional<WeightRef>& weight) { return weight ? of(*weight) : 0; }

uint64_t of_experts(const program::ExpertMatrix& matrix, const program::Routing& routing) {
  return matrix.rows() * matrix.weight.cols * routing.n_used;
}

uint64_t of(const program::Embed&, uint64_t) { return 0; }
uint64_t of(const program::Norm&, uint64_t) { return 0; }
uint64_t of(const program::Output&, uint64_t) { return 0; }
uint64_t of(const program::Recurrent&, uint64_t) { return 0; }

uint64_t of(const program::NormProject& s, uint64_t) {
  uint64_t sum = 0;
  for (const program::Projection& projection : s.projections) sum += of(projection.weight);
  return sum;
}

uint64_t of(const program::ProjectAdd& s, uint64_t) { return of(s.weight); }
uint64_t of(const program::GatedUp& s, uint64_t) { return of(s.gate) + of(s.up); }
uint64_t of(const program::Route& s, uint64_t) { return of(s.weight); }

uint64_t of(const program::ExpertGatedUp& s, uint64_t) {
  return of_experts(s.gate, s.routing) + of_experts(s.up, s.routing) + of(s.shared_gate) +
         of(s.shared_up);
}

uint64_t of(const program::ExpertDownAdd& s, uint64_t) {
  return of_experts(s.down, s.routing) + of(s.shared_down);
}

uint64_t of(const program::Attend& s, uint64_t position) {
  const uint64_t seen = s.window == 0 ? position + 1 : std::min(position + 1, s.window);
  return 2 * seen * s.n_heads * s.head_dim;
}

}  // namespace

uint64_t multiply_adds(const program::Program& program, uint64_t position) {
  uint64_t sum = 0;
  for (const program::Step& step : program.main) {
    sum += std::visit([&](const auto& s) { return of(s, position); }, step.operation);
  }
  return sum;
}

}  // namespace godwit::apps
