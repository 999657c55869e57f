#include "program/access.h"

namespace godwit::program {
namespace {

Access access(const Embed& s) {
  return {.reads = {}, .writes = {{s.out, s.table.cols}}, .weights = {s.table}};
}

Access access(const Norm& s) {
  Access a;
  uint64_t width = 0;
  for (const Norm::Part& part : s.parts) {
    a.reads.push_back({part.in, part.norm.weight.cols});
    a.weights.push_back(part.norm.weight);
    width += part.norm.weight.cols;
  }
  a.writes.push_back({s.out, width});
  return a;
}

void add(const std::optional<RmsNorm>& norm, Access& a) {
  if (norm) a.weights.push_back(norm->weight);
}

void add(const std::optional<WeightRef>& weight, Access& a) {
  if (weight) a.weights.push_back(*weight);
}

Access access(const NormProject& s) {
  Access a;
  add(s.norm, a);
  for (const Projection& p : s.projections) {
    if (a.reads.empty()) a.reads.push_back({s.in, p.weight.cols});
    a.writes.push_back({p.out, p.weight.rows});
    a.weights.push_back(p.weight);
    add(p.bias, a);
  }
  return a;
}

Access access(const Attend& s) {
  const uint64_t q_width = uint64_t{s.n_heads} * s.head_dim;
  const uint64_t kv_width = uint64_t{s.n_kv_heads} * s.head_dim;
  Access a{.reads = {{s.q, s.gated ? 2 * q_width : q_width}, {s.k, kv_width}, {s.v, kv_width}},
           .writes = {{s.out, q_width}},
           .weights = {}};
  add(s.q_norm, a);
  add(s.k_norm, a);
  add(s.sinks, a);
  return a;
}

Access access(const Recurrent& s) {
  const uint64_t key_width = uint64_t{s.n_key_heads} * s.head_dim;
  const uint64_t width = uint64_t{s.n_heads} * s.head_dim;
  const bool split = s.layout == Recurrent::Layout::kSplit;
  Access a{.reads = {{s.qkv, 2 * key_width + width + (split ? 0 : width)}},
           .writes = {{s.out, width}},
           .weights = {s.conv, s.dt_bias, s.decay, s.norm.weight}};
  if (s.z) a.reads.push_back({*s.z, width});
  a.reads.push_back({s.b, s.a ? s.n_heads : 2 * uint64_t{s.n_heads}});
  if (s.a) a.reads.push_back({*s.a, s.n_heads});
  return a;
}

Access access(const ProjectAdd& s) {
  Access a{.reads = {{s.in, s.weight.cols}, {s.target, s.weight.rows}},
           .writes = {{s.target, s.weight.rows}},
           .weights = {s.weight}};
  add(s.bias, a);
  add(s.norm, a);
  return a;
}

Access access(const GatedUp& s) {
  Access a{.reads = {{s.in, s.gate.cols}}, .writes = {{s.out, s.up.rows}}, .weights = {}};
  add(s.norm, a);
  a.weights.push_back(s.gate);
  add(s.gate_bias, a);
  a.weights.push_back(s.up);
  add(s.up_bias, a);
  return a;
}

Access access(const Route& s) {
  Access a{.reads = {{s.in, s.weight.cols}},
           .writes = {{s.out.buffer, s.out.width()}},
           .weights = {s.norm.weight, s.weight}};
  add(s.bias, a);
  add(s.shared, a);
  return a;
}

Access access(const ExpertGatedUp& s) {
  Access a{.reads = {{s.in, s.gate.weight.cols}, {s.routing.buffer, s.routing.width()}},
           .writes = {{s.out, s.routing.n_used * s.gate.rows() +
                                  (s.shared_gate ? s.shared_gate->rows : 0)}},
           .weights = {s.norm.weight, s.gate.weight, s.up.weight}};
  add(s.gate.bias, a);
  add(s.up.bias, a);
  add(s.shared_gate, a);
  add(s.shared_up, a);
  return a;
}

Access access(const ExpertDownAdd& s) {
  Access a{.reads = {{s.in, s.routing.n_used * s.down.weight.cols +
                                (s.shared_down ? s.shared_down->cols : 0)},
                     {s.routing.buffer, s.routing.width()},
                     {s.target, s.down.rows()}},
           .writes = {{s.target, s.down.rows()}},
           .weights = {s.down.weight}};
  add(s.down.bias, a);
  add(s.shared_down, a);
  return a;
}

Access access(const Output& s) {
  Access a{.reads = {{s.in, s.weight.cols}},
           .writes = {{s.logits, s.weight.rows}},
           .weights = {s.norm.weight, s.weight}};
  add(s.bias, a);
  return a;
}

}  // namespace

Access access_of(const Operation& operation) {
  return std::visit([](const auto& step) { return access(step); }, operation);
}

std::array<const ExpertMatrix*, 3> expert_matrices(const Operation& operation) {
  if (const auto* up = std::get_if<ExpertGatedUp>(&operation)) return {&up->gate, &up->up, nullptr};
  if (const auto* down = std::get_if<ExpertDownAdd>(&operation)) {
    return {nullptr, nullptr, &down->down};
  }
  return {};
}

}  // namespace godwit::program
