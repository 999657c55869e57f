// A filled KV cache, queries, and softmax attention over them in double precision. Buffers end at
// pages that may not be touched; what lies beyond the filled positions is NaN in every type. For
// checks of attention kernels; knows the cache only through kv_store() and kv_read().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/attention.h"
#include "os/thread_pool.h"
#include "testing/guarded_buffer.h"

namespace godwit::testing {

inline constexpr double kAttentionBound = 2e-6;  // absolute, in f32; values are of order 1

struct AttentionShape {
  size_t n_heads = 4;
  size_t n_kv_heads = 2;
  size_t head_dim = 64;
  TensorType k_type = TensorType::kF32;
  TensorType v_type = TensorType::kF32;
  size_t length = 1;    // positions
  size_t n_tokens = 1;  // at the last of them
};

[[nodiscard]] std::string text(const AttentionShape& shape);

// A way to run attention, as data: tests pass ones with a mistake planted.
struct AttentionSubject {
  std::string name;  // "avx2"
  Isa isa = Isa::kGeneric;
  void (*run)(const cpu::AttentionArgs& args, ThreadPool& pool, Isa isa);
};

// As the executor runs it: shares of the items, a barrier, shares of the merge.
void run_attention(const cpu::AttentionArgs& args, ThreadPool& pool, Isa isa);

class AttentionProblem {
 public:
  // Keys, values and queries are random.
  explicit AttentionProblem(const AttentionShape& shape);

  [[nodiscard]] const AttentionShape& shape() const { return shape_; }
  [[nodiscard]] size_t width() const { return shape_.n_heads * shape_.head_dim; }
  [[nodiscard]] std::span<float> queries() const { return q_.as<float>(); }  // [n_tokens, width]

  // [n, width] of `n` tokens from the first-th on; the scratch holds NaN before.
  struct Tokens {
    size_t first = 0;
    size_t n = 0;
  };
  [[nodiscard]] std::vector<float> run(const AttentionSubject& subject, ThreadPool& pool,
                                       Tokens tokens) const;
  [[nodiscard]] std::vector<float> run(const AttentionSubject& subject, ThreadPool& pool) const {
    return run(subject, pool, {0, shape_.n_tokens});
  }
  // The last token in double, and how far a kernel may lie from it: 2e-6 for what is computed in
  // f32, and eight standard deviations of what rounding adds where keys or values are kept in
  // blocks. A query is off by a uniform error at scale max|q| / 32639, which reaches the output
  // through sum_j P_j (v_j - out) k_j; a weight by one at scale max|v| / 32639 of its own block of
  // positions, so relative to exp(m_block - m) / l.
  struct Answer {
    std::vector<double> out;    // [width]
    std::vector<double> bound;  // [width]
  };
  [[nodiscard]] Answer answer() const;

  // k: [head_dim], into every KV head; v: [n_kv_heads, head_dim].
  void store(size_t position, std::span<const float> k, std::span<const float> v);
  // What the cache holds of a position, rounded to its types: [n_kv_heads, head_dim].
  struct Position {
    std::vector<float> k;
    std::vector<float> v;
  };
  [[nodiscard]] Position load(size_t position) const;

 private:
  [[nodiscard]] size_t bytes(TensorType type) const {
    return cpu::kv_bytes(type, shape_.n_kv_heads, shape_.head_dim, shape_.length);
  }
  [[nodiscard]] float scale() const;
  // What the positions weigh for one head, and how the rounding of a weight adds up.
  struct Mass {
    std::vector<double> shares;  // of the softmax
    double squares = 0;          // sum over positions of (exp(m_block - m) / l)^2
  };
  [[nodiscard]] Mass mass_of(std::span<const float> q, size_t kv_head) const;
  void solve_head(size_t head, std::span<double> out, std::span<double> bound) const;

  AttentionShape shape_;
  GuardedBuffer k_;
  GuardedBuffer v_;
  GuardedBuffer q_;
  cpu::KvCache cache_;
};

}  // namespace godwit::testing
