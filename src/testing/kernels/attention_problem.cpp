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
  const bool v_rounds = tensor_geometry(shape_.v_type).block_weights > 1;
  std::vector<float> k(dim);
  std::vector<float> v(dim);
  double most_v = 0.0;
  std::vector<double> mean_k(dim, 0.0);
  std::vector<double> products(k_rounds ? dim * dim : 0, 0.0);  // of shares, v and k
  for (size_t position = 0; position < shape_.length; ++position) {
    cpu::kv_read(cache_, kv_head, position, k, v);
    for (size_t d = 0; d < dim; ++d) {
      const double part = mass.shares[position] * static_cast<double>(v[d]);
      out[d] += part;
      mean_k[d] += mass.shares[position] * static_cast<double>(k[d]);
      most_v = std::max(most_v, std::abs(static_cast<double>(v[d])));
      if (!k_rounds) continue;
      for (size_t e = 0; e < dim; ++e) products[d * dim + e] += part * static_cast<double>(k[e]);
    }
  }
  double most_q = 0.0;
  for (const float x : q) most_q = std::max(most_q, std::abs(static_cast<double>(x)));
  const double q_step = most_q / 32639 * static_cast<double>(scale());
  const double weight_step = v_rounds ? most_v / 32639 : 0.0;
  for (size_t d = 0; d < dim; ++d) {
    double variance = weight_step * weight_step * mass.squares;
    for (size_t e = 0; k_rounds && e < dim; ++e) {
      const double slope = q_step * (products[d * dim + e] - out[d] * mean_k[e]);
      variance += slope * slope;
    }
    bound[d] += 8 * std::sqrt(variance / 12);
  }
}

}  // namespace godwit::testing
