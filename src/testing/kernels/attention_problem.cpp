#include "testing/kernels/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/attention_block.h"
#include "base/bits.h"
#include "base/random.h"

namespace godwit::testing {
namespace {

// Two planes of bytes: a scale is the largest magnitude over so much.
constexpr double kRoundingSteps = 127.0 * 257.0;

double largest(std::span<const float> x) {
  double most = 0.0;
  for (const float value : x) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

// Sums over positions, each by its share of the softmax.
struct Moments {
  Moments(size_t dim, bool with_products)
      : mean_k(dim, 0.0), mean_v(dim, 0.0), products(with_products ? dim * dim : 0, 0.0) {}

  void add(double share, std::span<const float> k, std::span<const float> v) {
    const size_t dim = k.size();
    most_v = std::max(most_v, largest(v));
    for (size_t d = 0; d < dim; ++d) {
      const double part = share * static_cast<double>(v[d]);
      mean_v[d] += part;
      mean_k[d] += share * static_cast<double>(k[d]);
      if (products.empty()) continue;
      for (size_t e = 0; e < dim; ++e) products[d * dim + e] += part * static_cast<double>(k[e]);
    }
  }
  // Of the derivatives of output d by the scores' queries: sum_j P_j (v_jd - out_d) k_j, squared.
  [[nodiscard]] double squared_slopes(size_t d) const {
    double sum = 0.0;
    for (size_t e = 0; e < mean_k.size(); ++e) {
      const double slope = products[d * mean_k.size() + e] - mean_v[d] * mean_k[e];
      sum += slope * slope;
    }
    return sum;
  }

  std::vector<double> mean_k;
  std::vector<double> mean_v;    // the output
  std::vector<double> products;  // [dim of v, dim of k]
  double most_v = 0.0;
};

}  // namespace

std::string text(const AttentionShape& s) {
  return fmt::format("{} heads on {}, dim {}, length {}", s.n_heads, s.n_kv_heads, s.head_dim,
                     s.length);
}

void run_attention(const cpu::AttentionArgs& args, ThreadPool& pool, Isa isa) {
  pool.run([&](size_t thread) {
    cpu::attention_run(args, thread, pool.size(), isa);
    pool.barrier();
    cpu::attention_merge(args, thread, pool.size(), isa);
  });
}

AttentionProblem::AttentionProblem(const AttentionShape& shape)
    : shape_(shape),
      k_(bytes(shape.k_type)),
      v_(bytes(shape.v_type)),
      q_(shape.n_tokens * width() * sizeof(float)) {
  cache_ = {.k = k_.bytes().data(),
            .v = v_.bytes().data(),
            .k_type = shape.k_type,
            .v_type = shape.v_type,
            .n_kv_heads = shape.n_kv_heads,
            .head_dim = shape.head_dim,
            .capacity = cpu::kv_capacity(shape.length)};
  // All ones is NaN in every type.
  std::memset(k_.bytes().data(), 0xff, k_.bytes().size());
  std::memset(v_.bytes().data(), 0xff, v_.bytes().size());
  RandomStream random(shape.length * 1000 + shape.head_dim);
  std::vector<float> k(shape.head_dim);
  std::vector<float> v(shape.head_dim);
  for (size_t head = 0; head < shape.n_kv_heads; ++head) {
    for (size_t position = 0; position < shape.length; ++position) {
      for (float& x : k) x = static_cast<float>(random.bell());
      for (float& x : v) x = static_cast<float>(random.bell());
      cpu::kv_store(cache_, head, position, k.data(), v.data(), Isa::kGeneric);
    }
  }
  for (float& x : queries()) x = static_cast<float>(random.bell());
}

float AttentionProblem::scale() const {
  return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
}

std::vector<float> AttentionProblem::run(const AttentionSubject& subject, ThreadPool& pool,
                                         Tokens tokens) const {
  const GuardedBuffer out(tokens.n * width() * sizeof(float));
  const GuardedBuffer scratch(cpu::attention_scratch_bytes({.n_heads = shape_.n_heads,
                                                            .n_kv_heads = shape_.n_kv_heads,
                                                            .head_dim = shape_.head_dim,
                                                            .max_positions = shape_.length,
                                                            .max_tokens = tokens.n}));
  std::memset(scratch.bytes().data(), 0xff, scratch.bytes().size());
  subject.run({.q = queries().data() + tokens.first * width(),
               .q_stride = width(),
               .cache = cache_,
               .n_heads = shape_.n_heads,
               .first_position = shape_.length - shape_.n_tokens + tokens.first,
               .n_tokens = tokens.n,
               .scale = scale(),
               .scratch = scratch.bytes(),
               .out = out.as<float>().data(),
               .out_stride = width()},
              pool, subject.isa);
  return {out.as<float>().begin(), out.as<float>().end()};
}

void AttentionProblem::store(size_t position, std::span<const float> k, std::span<const float> v) {
  for (size_t head = 0; head < shape_.n_kv_heads; ++head) {
    cpu::kv_store(cache_, head, position, k.data(), v.data() + head * shape_.head_dim,
                  Isa::kGeneric);
  }
}

AttentionProblem::Position AttentionProblem::load(size_t position) const {
  const size_t dim = shape_.head_dim;
  Position found = {std::vector<float>(shape_.n_kv_heads * dim),
                    std::vector<float>(shape_.n_kv_heads * dim)};
  for (size_t head = 0; head < shape_.n_kv_heads; ++head) {
    cpu::kv_read(cache_, head, position, std::span(found.k).subspan(head * dim, dim),
                 std::span(found.v).subspan(head * dim, dim));
  }
  return found;
}

AttentionProblem::Answer AttentionProblem::answer() const {
  Answer found = {std::vector<double>(width(), 0.0), std::vector<double>(width(), kAttentionBound)};
  for (size_t head = 0; head < shape_.n_heads; ++head) {
    const size_t at = head * shape_.head_dim;
    solve_head(head, std::span(found.out).subspan(at, shape_.head_dim),
               std::span(found.bound).subspan(at, shape_.head_dim));
  }
  return found;
}

AttentionProblem::Mass AttentionProblem::mass_of(std::span<const float> q, size_t kv_head) const {
  const size_t dim = shape_.head_dim;
  const size_t block = cpu::attention_block(shape_.length - 1, 0);
  std::vector<float> k(dim);
  std::vector<float> v(dim);
  Mass mass;
  std::vector<double>& scores = mass.shares;
  scores.resize(shape_.length);
  std::vector<double> most_of_block(div_up(shape_.length, block),
                                    -std::numeric_limits<double>::infinity());
  for (size_t position = 0; position < shape_.length; ++position) {
    cpu::kv_read(cache_, kv_head, position, k, v);
    double dot = 0.0;
    for (size_t d = 0; d < dim; ++d) dot += static_cast<double>(q[d]) * static_cast<double>(k[d]);
    scores[position] = dot * static_cast<double>(scale());
    double& most = most_of_block[position / block];
    most = std::max(most, scores[position]);
  }
  const double max = *std::ranges::max_element(scores);
  double sum = 0.0;
  for (double& s : scores) sum += s = std::exp(s - max);
  for (size_t position = 0; position < shape_.length; ++position) {
    const double of_block = std::exp(most_of_block[position / block] - max) / sum;
    mass.squares += of_block * of_block;
    scores[position] /= sum;
  }
  return mass;
}

void AttentionProblem::solve_head(size_t head, std::span<double> out,
                                  std::span<double> bound) const {
  const size_t dim = shape_.head_dim;
  const size_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
  const std::span<const float> q =
      queries().subspan((shape_.n_tokens - 1) * width() + head * dim, dim);
  const Mass mass = mass_of(q, kv_head);
  const bool k_rounds = tensor_geometry(shape_.k_type).block_weights > 1;
  Moments moments(dim, k_rounds);
  std::vector<float> k(dim);
  std::vector<float> v(dim);
  for (size_t position = 0; position < shape_.length; ++position) {
    cpu::kv_read(cache_, kv_head, position, k, v);
    moments.add(mass.shares[position], k, v);
  }
  std::ranges::copy(moments.mean_v, out.begin());
  const bool v_rounds = tensor_geometry(shape_.v_type).block_weights > 1;
  const double q_step = largest(q) / kRoundingSteps * static_cast<double>(scale());
  const double weight_step = v_rounds ? moments.most_v / kRoundingSteps : 0.0;
  for (size_t d = 0; d < dim; ++d) {
    double variance = weight_step * weight_step * mass.squares;
    if (k_rounds) variance += q_step * q_step * moments.squared_slopes(d);
    bound[d] += 8 * std::sqrt(variance / 12);
  }
}

}  // namespace godwit::testing
