#include "testing/kernels/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

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
                                                            .max_tokens = tokens.n,
                                                            .n_threads = pool.size()}));
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

std::vector<double> AttentionProblem::expected() const {
  std::vector<double> out(width(), 0.0);
  for (size_t head = 0; head < shape_.n_heads; ++head) {
    add_head(head, std::span(out).subspan(head * shape_.head_dim, shape_.head_dim));
  }
  return out;
}

void AttentionProblem::add_head(size_t head, std::span<double> out) const {
  const size_t dim = shape_.head_dim;
  const size_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
  const std::span<const float> q =
      queries().subspan((shape_.n_tokens - 1) * width() + head * dim, dim);
  std::vector<float> k(dim);
  std::vector<float> v(dim);
  std::vector<double> scores(shape_.length);
  for (size_t position = 0; position < shape_.length; ++position) {
    cpu::kv_read(cache_, kv_head, position, k, v);
    double dot = 0.0;
    for (size_t d = 0; d < dim; ++d) dot += static_cast<double>(q[d]) * static_cast<double>(k[d]);
    scores[position] = dot * static_cast<double>(scale());
  }
  const double max = *std::ranges::max_element(scores);
  double sum = 0.0;
  for (double& s : scores) sum += s = std::exp(s - max);
  for (size_t position = 0; position < shape_.length; ++position) {
    cpu::kv_read(cache_, kv_head, position, k, v);
    const double share = scores[position] / sum;
    for (size_t d = 0; d < dim; ++d) out[d] += share * static_cast<double>(v[d]);
  }
}

}  // namespace godwit::testing
