#include "program/access.h"

namespace godwit::program {
namespace {

Access access(const Embed& s) {
  return {.reads = {}, .writes = {{s.out, s.table.cols}}, .weights = {s.table}};
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
  Access a{.reads = {{s.q, q_width}, {s.k, kv_width}, {s.v, kv_width}},
           .writes = {{s.out, q_width}},
           .weights = {}};
  add(s.q_norm, a);
  add(s.k_norm, a);
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

}  // namespace godwit::program
