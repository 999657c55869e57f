// What one token computes, as data: a Step is the work between two grid-wide synchronisations, with
// typed operands and nothing per token. Executors visit the variant, so that a new kind does not
// compile until every executor answers for it. Shapes below are of one row (one token).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/tensor_type.h"

namespace godwit::program {

// A weight of the model, resolved to bytes at load by its index in Program::weights.
struct WeightRef {
  uint32_t id = 0;
  TensorType type = TensorType::kF32;
  uint64_t rows = 0;
  uint64_t cols = 0;
};

// An activation buffer, an index in Program::buffers.
struct BufferId {
  uint32_t value = 0;

  friend bool operator==(BufferId, BufferId) = default;
};

// The keys and values of one attention layer, an index in Program::kvs.
struct KvRef {
  uint32_t value = 0;
};

// An index in Program::ropes.
struct RopeRef {
  uint32_t value = 0;
};

// out = W[token]
struct Embed {
  WeightRef table;  // [n_vocab, dim]
  BufferId out;     // [dim]
};

struct RmsNorm {
  WeightRef weight;  // [1, dim] f32
  float epsilon = 0.0f;
};

// out = W in (+ bias)
struct Projection {
  WeightRef weight;               // [out, dim]
  std::optional<WeightRef> bias;  // [1, out] f32
  BufferId out;                   // [out]
};

// n = norm(in); each projection of n.
struct NormProject {
  BufferId in;  // [dim]
  RmsNorm norm;
  std::vector<Projection> projections;
};

// Which dimensions of a head turn together: (2i, 2i+1), or (i, i + n_rot/2).
enum class RopePairs : uint8_t { kAdjacent, kHalves };

// Appends k and v at the row's position, then attends over positions 0 .. row's position:
// out_h = softmax(scale * rope(q_h) . rope(K)) V. Each KV head serves n_heads / n_kv_heads heads.
struct Attend {
  BufferId q;    // [n_heads, head_dim]
  BufferId k;    // [n_kv_heads, head_dim]
  BufferId v;    // [n_kv_heads, head_dim]
  BufferId out;  // [n_heads, head_dim]
  KvRef kv;
  RopeRef rope;
  RopePairs pairs = RopePairs::kAdjacent;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0.0f;
};

// target += W in (+ bias)
struct ProjectAdd {
  BufferId in;                    // [cols]
  WeightRef weight;               // [dim, cols]
  std::optional<WeightRef> bias;  // [1, dim] f32
  BufferId target;                // [dim]
};

// n = norm(in); out = silu(gate n) * (up n)
struct GatedUp {
  BufferId in;  // [dim]
  RmsNorm norm;
  WeightRef gate;  // [ffn, dim]
  WeightRef up;    // [ffn, dim]
  BufferId out;    // [ffn]
};

// logits = W norm(in), for the rows that want logits only.
struct Output {
  BufferId in;  // [dim]
  RmsNorm norm;
  WeightRef weight;  // [n_vocab, dim]; the embedding table itself when tied
  BufferId logits;   // [n_vocab]
};

using Operation = std::variant<Embed, NormProject, Attend, ProjectAdd, GatedUp, Output>;

struct Step {
  std::string label;  // "blk.3.attend"
  Operation operation;
};

[[nodiscard]] std::string_view kind_name(const Operation& operation);

// For std::visit: one lambda per kind.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace godwit::program
