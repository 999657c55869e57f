#include "program/access.h"

namespace godwit::program {
namespace {

Access access(const Embed& s) {
  return {.reads = {}, .writes = {{s.out, s.table.cols}}, .weights = {s.table}};
}

Access access(const NormProject& s) {
  Access a{.reads = {{s.in, s.norm.weight.cols}}, .writes = {}, .weights = {s.norm.weight}};
  for (const Projection& p : s.projections) {
    a.writes.push_back({p.out, p.weight.rows});
    a.weights.push_back(p.weight);
    if (p.bias) a.weights.push_back(*p.bias);
  }
  return a;
}

Access access(const Attend& s) {
  const uint64_t q_width = uint64_t{s.n_heads} * s.head_dim;
  const uint64_t kv_width = uint64_t{s.n_kv_heads} * s.head_dim;
  return {.reads = {{s.q, q_width}, {s.k, kv_width}, {s.v, kv_width}},
          .writes = {{s.out, q_width}},
          .weights = {}};
}

Access access(const ProjectAdd& s) {
  Access a{.reads = {{s.in, s.weight.cols}, {s.target, s.weight.rows}},
           .writes = {{s.target, s.weight.rows}},
           .weights = {s.weight}};
  if (s.bias) a.weights.push_back(*s.bias);
  return a;
}

Access access(const GatedUp& s) {
  return {.reads = {{s.in, s.norm.weight.cols}},
          .writes = {{s.out, s.up.rows}},
          .weights = {s.norm.weight, s.gate, s.up}};
}

Access access(const Output& s) {
  return {.reads = {{s.in, s.norm.weight.cols}},
          .writes = {{s.logits, s.weight.rows}},
          .weights = {s.norm.weight, s.weight}};
}

}  // namespace

Access access_of(const Operation& operation) {
  return std::visit([](const auto& step) { return access(step); }, operation);
}

}  // namespace godwit::program
