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

// out = scale * W[token]
struct Embed {
  WeightRef table;  // [n_vocab, dim]
  BufferId out;     // [dim]
  float scale = 1.0f;
};

struct RmsNorm {
  WeightRef weight;  // [1, dim] f32
  float epsilon = 0.0f;
};

// out = W in (+ bias)
struct Projection {
  WeightRef weight;                    // [out, dim]
  std::optional<WeightRef> bias = {};  // [1, out] f32
  BufferId out;                        // [out]
};

// n = norm(in), or in itself where there is none; each projection of n.
struct NormProject {
  BufferId in;  // [dim]
  std::optional<RmsNorm> norm = {};
  std::vector<Projection> projections;
};

// Which dimensions of a head turn together: (2i, 2i+1), or (i, i + n_rot/2).
enum class RopePairs : uint8_t { kAdjacent, kHalves };

// q is multiplied by 1 + beta * ln(1 + floor(position / length)): Llama 4's attention temperature,
// which keeps attention sharp far beyond the length a model was trained with.
struct PositionScale {
  double beta = 0.0;
  uint64_t length = 0;  // positions, at least 1
};

// Appends k and v at the row's position, then attends over the row's own position and those before:
// out_h = softmax(capped(scale * rope(norm(q_h)) . rope(norm(K)))) V. Each KV head serves
// n_heads / n_kv_heads heads.
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
  // Weights of [1, head_dim] norm each head by itself, longer ones the heads of a row together.
  std::optional<RmsNorm> q_norm = {};
  std::optional<RmsNorm> k_norm = {};
  std::optional<PositionScale> q_scale = {};
  float softcap = 0.0f;  // s -> softcap * tanh(s / softcap); 0: none
  uint64_t window = 0;   // sees only the last `window` positions, its own included; 0: all
};

// target += scale * norm(W in (+ bias)); without a norm, scale * (W in (+ bias)).
struct ProjectAdd {
  BufferId in;                         // [cols]
  WeightRef weight;                    // [dim, cols]
  std::optional<WeightRef> bias = {};  // [1, dim] f32
  std::optional<RmsNorm> norm = {};
  float scale = 1.0f;
  BufferId target;  // [dim]
};

// kGelu is the tanh form: 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))).
enum class Activation : uint8_t { kSilu, kGelu };

// n = norm(in), or in; out = activation(gate n (+ bias)) * (up n (+ bias))
struct GatedUp {
  BufferId in;  // [dim]
  std::optional<RmsNorm> norm = {};
  WeightRef gate;                           // [ffn, dim]
  std::optional<WeightRef> gate_bias = {};  // [1, ffn] f32
  WeightRef up;                             // [ffn, dim]
  std::optional<WeightRef> up_bias = {};    // [1, ffn] f32
  Activation activation = Activation::kSilu;
  BufferId out;  // [ffn]
};

// logits = capped(scale * (W norm(in) (+ bias))), for the rows that want logits only.
struct Output {
  BufferId in;  // [dim]
  RmsNorm norm;
  WeightRef weight;                    // [n_vocab, dim]; the embedding table itself when tied
  std::optional<WeightRef> bias = {};  // [1, n_vocab] f32
  float scale = 1.0f;
  float softcap = 0.0f;  // as in Attend
  BufferId logits;       // [n_vocab]
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
