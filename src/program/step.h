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

// The recurrent state of one layer, an index in Program::states.
struct StateRef {
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

// out = the norms of its parts, one after the other.
struct Norm {
  struct Part {
    BufferId in;  // [dim]
    RmsNorm norm;
  };
  std::vector<Part> parts;
  BufferId out;  // [sum of the parts' dims]
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
// n_heads / n_kv_heads heads. A head's sink joins its softmax as one more score, neither scaled nor
// capped, which has no value: where nothing seen matters, the head may say nothing.
struct Attend {
  BufferId q;    // [n_heads, head_dim], or with gates [n_heads, 2, head_dim]: query, then gate
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
  bool gated = false;    // out_h is multiplied by sigmoid of the head's gate, which nothing turns
  std::optional<WeightRef> sinks = {};  // [1, n_heads] f32
};

// One token of a Gated DeltaNet layer (Yang et al. 2024), after its projections. A causal depthwise
// convolution over the last `taps` rows of q, k and v and SiLU; q and k to length 1 by
// x * rsqrt(sum(x^2) + length_epsilon). For each value head h, with its key head's q and k:
//   S <- exp(g) S with g = softplus(a + dt_bias) * decay;  S <- S + sigmoid(b) (v - S k) k^T;
//   out_h = norm(S q / sqrt(head_dim)) * silu(z_h)
struct Recurrent {
  // Where q, k, v and z of a token lie: [q of all heads | k | v] and z in its own buffer, or, key
  // head by key head, [q | k | v of its heads | z of its heads] in `qkv` alone.
  enum class Layout : uint8_t { kSplit, kByKeyHead };
  // Which value heads go with a key head: neighbours (h / heads_per_key()), or every n-th
  // (h modulo n_key_heads).
  enum class Pairing : uint8_t { kNeighbours, kModulo };

  BufferId qkv;
  std::optional<BufferId> z = {};  // [n_heads, head_dim], for kSplit
  BufferId b;                      // [n_heads]; without `a`: [n_key_heads][b of its heads | a]
  std::optional<BufferId> a = {};  // [n_heads]
  BufferId out;                    // [n_heads, head_dim]
  StateRef state;
  Layout layout = Layout::kSplit;
  Pairing pairing = Pairing::kNeighbours;  // the only one for kByKeyHead, and without `a`
  WeightRef conv;     // [channels, taps] f32, oldest row first; channels as in kSplit
  WeightRef dt_bias;  // [1, n_heads] f32
  WeightRef decay;    // [1, n_heads] f32, negative: -exp(A_log)
  RmsNorm norm;       // [1, head_dim], the same for all heads
  uint32_t n_heads = 0;
  uint32_t n_key_heads = 0;
  uint32_t head_dim = 0;  // of keys and values
  float length_epsilon = 1e-6f;

  [[nodiscard]] uint32_t heads_per_key() const { return n_heads / n_key_heads; }
  // Value head number i of those that go with a key head.
  [[nodiscard]] uint32_t head_of(uint32_t key_head, uint32_t i) const {
    return pairing == Pairing::kModulo ? i * n_key_heads + key_head
                                       : key_head * heads_per_key() + i;
  }
  // The place of a value head's matrix in the state: in order of key heads.
  [[nodiscard]] uint32_t matrix_of(uint32_t head) const {
    return pairing == Pairing::kModulo ? key_head_of(head) * heads_per_key() + head / n_key_heads
                                       : head;
  }
  [[nodiscard]] uint32_t key_head_of(uint32_t head) const {
    return pairing == Pairing::kModulo ? head % n_key_heads : head / heads_per_key();
  }
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

// What a gate g makes of u: silu(g) u; gelu(g) u in the tanh form,
// 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))) u; or gpt-oss's, of both clamped:
// c sigmoid(kClampedSlope c) (d + 1), c = min(g, kClamp), d = u within [-kClamp, kClamp].
enum class Activation : uint8_t { kSilu, kGelu, kSwigluClamped };
inline constexpr double kClamp = 7.0;
inline constexpr double kClampedSlope = 1.702;

// n = norm(in), or in; out = activation of gate n (+ bias) and up n (+ bias)
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

// Which experts a row goes to, in `buffer`: [n_used] ids, by falling weight, as floats; [n_used]
// weights; and the weight of the shared expert, where there is one.
struct Routing {
  BufferId buffer;
  uint32_t n_used = 0;
  bool shared = false;

  [[nodiscard]] uint64_t width() const { return 2 * uint64_t{n_used} + (shared ? 1 : 0); }
  [[nodiscard]] uint64_t n_slots() const { return uint64_t{n_used} + (shared ? 1 : 0); }
};

// The n_used largest of softmax(W norm(in) (+ bias)), ties to the lower id; their weights, divided
// by their sum if `renormalise`: the softmax of the chosen alone. The shared expert's weight is
// sigmoid(shared . norm(in)).
struct Route {
  BufferId in;  // [dim]
  RmsNorm norm;
  WeightRef weight;                      // [n_experts, dim]
  std::optional<WeightRef> bias = {};    // [1, n_experts] f32
  std::optional<WeightRef> shared = {};  // [1, dim] f32
  bool renormalise = true;
  Routing out;
};

// Matrices of all experts of a layer, one after the other, and what each adds to its product.
struct ExpertMatrix {
  WeightRef weight;  // [n_experts * rows, cols]
  uint32_t n_experts = 0;
  std::optional<WeightRef> bias = {};  // [1, n_experts * rows] f32

  [[nodiscard]] uint64_t rows() const { return weight.rows / n_experts; }
};

// n = norm(in); for each expert chosen, and the shared one last:
// out_s = activation of gate_e n (+ bias) and up_e n (+ bias)
struct ExpertGatedUp {
  BufferId in;  // [dim]
  RmsNorm norm;
  Routing routing;
  ExpertMatrix gate;                          // of [ffn, dim]
  ExpertMatrix up;                            // of [ffn, dim]
  std::optional<WeightRef> shared_gate = {};  // [shared ffn, dim]
  std::optional<WeightRef> shared_up = {};    // [shared ffn, dim]
  Activation activation = Activation::kSilu;
  BufferId out;  // [n_used, ffn], then [shared ffn]
};

// target += sum over the experts chosen, then the shared one, of weight_s * (down_e in_s (+ bias))
struct ExpertDownAdd {
  BufferId in;  // [n_used, ffn], then [shared ffn]
  Routing routing;
  ExpertMatrix down;                          // of [dim, ffn]
  std::optional<WeightRef> shared_down = {};  // [dim, shared ffn]
  BufferId target;                            // [dim]
};

using Operation = std::variant<Embed, Norm, NormProject, Attend, Recurrent, ProjectAdd, GatedUp,
                               Route, ExpertGatedUp, ExpertDownAdd, Output>;

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
