// Attention on every instruction set this processor has: against softmax attention in double
// precision, and bit for bit against itself however the work is cut. Buffers end at pages that may
// not be touched; positions that no token sees hold NaN.
#include "backend/cpu/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/attention_block.h"
#include "backend/kv_rounding.h"
#include "base/random.h"
#include "testing/guarded_buffer.h"

namespace godwit::cpu {
namespace {

using testing::GuardedBuffer;

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa <= detected_isa()) found.push_back(isa);
  }
  return found;
}

struct Shape {
  size_t n_heads = 4;
  size_t n_kv_heads = 2;
  size_t head_dim = 64;
  TensorType k_type = TensorType::kF32;
  TensorType v_type = TensorType::kF32;
  float softcap = 0.0f;
  size_t window = 0;
  float spread = 1.0f;            // of queries
  std::vector<float> sinks = {};  // [n_heads], or none
  size_t block = 0;
};

std::string text(const Shape& s, size_t length) {
  return fmt::format("{} heads on {}, dim {}, K {}, V {}, window {}, length {}", s.n_heads,
                     s.n_kv_heads, s.head_dim, tensor_type_name(s.k_type),
                     tensor_type_name(s.v_type), s.window, length);
}

// A filled cache of `length` positions and queries for as many tokens.
class Problem {
 public:
  Problem(const Shape& shape, size_t length)
      : shape_(shape),
        length_(length),
        k_(bytes(shape.k_type)),
        v_(bytes(shape.v_type)),
        q_(length * width() * sizeof(float)) {
    cache_ = {.k = k_.bytes().data(),
              .v = v_.bytes().data(),
              .k_type = shape.k_type,
              .v_type = shape.v_type,
              .n_kv_heads = shape.n_kv_heads,
              .head_dim = shape.head_dim,
              .capacity = kv_capacity(length)};
    // All ones is NaN in every type.
    std::memset(k_.bytes().data(), 0xff, k_.bytes().size());
    std::memset(v_.bytes().data(), 0xff, v_.bytes().size());
    RandomStream random(length * 1000 + shape.head_dim);
    std::vector<float> k(shape.head_dim);
    std::vector<float> v(shape.head_dim);
    for (size_t head = 0; head < shape.n_kv_heads; ++head) {
      for (size_t position = 0; position < length; ++position) {
        for (float& x : k) x = static_cast<float>(random.bell());
        for (float& x : v) x = static_cast<float>(random.bell());
        kv_store(cache_, head, position, k.data(), v.data(), Isa::kGeneric);
      }
    }
    for (float& x : queries()) x = static_cast<float>(random.bell()) * shape.spread;
  }

  [[nodiscard]] size_t width() const { return shape_.n_heads * shape_.head_dim; }
  [[nodiscard]] std::span<float> queries() const { return q_.as<float>(); }
  [[nodiscard]] const KvCache& cache() const { return cache_; }
  [[nodiscard]] float scale() const {
    return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
  }

  // Tokens [first, first + n), the items cut into `n_threads` shares, the last thread first.
  [[nodiscard]] std::vector<float> run(size_t first, size_t n, Isa isa, size_t n_threads) const {
    const GuardedBuffer out(n * width() * sizeof(float));
    const GuardedBuffer scratch(attention_scratch_bytes({.n_heads = shape_.n_heads,
                                                         .n_kv_heads = shape_.n_kv_heads,
                                                         .head_dim = shape_.head_dim,
                                                         .max_positions = first + n,
                                                         .max_tokens = n,
                                                         .block = shape_.block}));
    const AttentionArgs args = {.q = queries().data() + first * width(),
                                .q_stride = width(),
                                .cache = cache_,
                                .n_heads = shape_.n_heads,
                                .first_position = first,
                                .n_tokens = n,
                                .scale = scale(),
                                .softcap = shape_.softcap,
                                .window = shape_.window,
                                .block = shape_.block,
                                .sinks = shape_.sinks.empty() ? nullptr : shape_.sinks.data(),
                                .scratch = scratch.bytes(),
                                .out = out.as<float>().data(),
                                .out_stride = width()};
    for (size_t thread = n_threads; thread-- > 0;) attention_run(args, thread, n_threads, isa);
    for (size_t thread = 0; thread < n_threads; ++thread) {
      attention_merge(args, thread, n_threads, isa);
    }
    return {out.as<float>().begin(), out.as<float>().end()};
  }

  // The last token alone.
  [[nodiscard]] std::vector<float> decode(Isa isa) const { return run(length_ - 1, 1, isa, 1); }

  // Softmax attention of one token, in double.
  [[nodiscard]] std::vector<double> expected(size_t token) const { return reference(token).out; }

  // The same with how far each output may lie from it: 2e-6 for what is computed in f32, and eight
  // standard deviations of what rounding to 16 bits adds where keys or values are kept in blocks.
  // A query is off by a uniform error at scale max|q| / 32639, which reaches the output through
  // sum_j P_j (v_j - out) k_j; a weight by one at scale max|v| / 32639 of its own block of
  // positions, so relative to exp(m_block - m) / l.
  struct Reference {
    std::vector<double> out;
    std::vector<double> bound;
  };
  [[nodiscard]] Reference reference(size_t token) const {
    const size_t dim = shape_.head_dim;
    const bool k_rounds = is_blocks(shape_.k_type);
    const bool v_rounds = is_blocks(shape_.v_type);
    Reference found = {plain(token), std::vector<double>(width(), 2e-6)};
    if (!k_rounds && !v_rounds) return found;
    for (size_t head = 0; head < shape_.n_heads; ++head) {
      const size_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
      const float* const q = queries().data() + token * width() + head * dim;
      const Mass mass = mass_of(q, kv_head, token);
      double* const out = found.out.data() + head * dim;
      double most_q = 0;
      for (size_t d = 0; d < dim; ++d) most_q = std::max(most_q, std::abs(double{q[d]}));
      const double q_step = most_q / 32639 * static_cast<double>(scale());
      for (size_t d = 0; d < dim; ++d) {
        double variance = 0;
        if (v_rounds) variance += std::pow(mass.most_v / 32639, 2) * mass.squares;
        if (k_rounds) {
          std::vector<double> slope(dim, 0.0);
          for (size_t j = 0; j < mass.shares.size(); ++j) {
            const KeyValue& kv = mass.kvs[j];
            const double by = mass.shares[j] * (double{kv.v[d]} - out[d]);
            for (size_t e = 0; e < dim; ++e) slope[e] += by * double{kv.k[e]};
          }
          for (const double s : slope) variance += std::pow(q_step * s, 2);
        }
        found.bound[head * dim + d] += 8 * std::sqrt(variance / 12);
      }
    }
    return found;
  }

 private:
  struct KeyValue {
    std::vector<float> k;
    std::vector<float> v;
  };
  // What the positions that a token sees weigh.
  struct Mass {
    std::vector<KeyValue> kvs;
    std::vector<double> shares;
    double most_v = 0;
    double squares = 0;  // sum over positions of (exp(m_block - m) / l)^2
  };
  [[nodiscard]] static bool is_blocks(TensorType type) {
    return tensor_geometry(type).block_weights > 1;
  }
  [[nodiscard]] Mass mass_of(const float* q, size_t kv_head, size_t token) const {
    Mass mass;
    const size_t begin = first_seen(token);
    for (size_t position = begin; position <= token; ++position) {
      mass.kvs.push_back(read(kv_head, position));
      mass.shares.push_back(score(q, mass.kvs.back().k));
      for (const float v : mass.kvs.back().v)
        mass.most_v = std::max(mass.most_v, std::abs(double{v}));
    }
    const size_t length = attention_block(token, shape_.block);
    const double most = *std::ranges::max_element(mass.shares);
    std::vector<double> most_of_block(token / length + 1, -1e300);
    double sum = 0;
    for (size_t j = 0; j < mass.shares.size(); ++j) {
      double& of_block = most_of_block[(begin + j) / length];
      of_block = std::max(of_block, mass.shares[j]);
      sum += std::exp(mass.shares[j] - most);
    }
    for (size_t j = 0; j < mass.shares.size(); ++j) {
      mass.squares += std::pow(std::exp(most_of_block[(begin + j) / length] - most) / sum, 2);
      mass.shares[j] = std::exp(mass.shares[j] - most) / sum;
    }
    return mass;
  }
  [[nodiscard]] std::vector<double> plain(size_t token) const {
    const size_t dim = shape_.head_dim;
    const size_t begin = first_seen(token);
    std::vector<double> out(width(), 0.0);
    for (size_t head = 0; head < shape_.n_heads; ++head) {
      const size_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
      const float* const q = queries().data() + token * width() + head * dim;
      std::vector<double> scores;
      for (size_t position = begin; position <= token; ++position) {
        scores.push_back(score(q, read(kv_head, position).k));
      }
      const double sink = shape_.sinks.empty() ? -std::numeric_limits<double>::infinity()
                                               : static_cast<double>(shape_.sinks[head]);
      const double max = std::max(sink, *std::ranges::max_element(scores));
      double sum = std::exp(sink - max);
      for (double& s : scores) sum += s = std::exp(s - max);
      for (size_t i = 0; i < scores.size(); ++i) {
        const auto [k, v] = read(kv_head, begin + i);
        for (size_t d = 0; d < dim; ++d) {
          out[head * dim + d] += scores[i] / sum * static_cast<double>(v[d]);
        }
      }
    }
    return out;
  }

  [[nodiscard]] KeyValue read(size_t kv_head, size_t position) const {
    KeyValue found = {std::vector<float>(shape_.head_dim), std::vector<float>(shape_.head_dim)};
    kv_read(cache_, kv_head, position, found.k, found.v);
    return found;
  }
  [[nodiscard]] size_t first_seen(size_t token) const {
    return shape_.window != 0 && token + 1 > shape_.window ? token + 1 - shape_.window : 0;
  }
  [[nodiscard]] double score(const float* q, std::span<const float> k) const {
    double dot = 0.0;
    for (size_t d = 0; d < shape_.head_dim; ++d) {
      dot += static_cast<double>(q[d]) * static_cast<double>(k[d]);
    }
    dot *= static_cast<double>(scale());
    const auto cap = static_cast<double>(shape_.softcap);
    return cap != 0.0 ? cap * std::tanh(dot / cap) : dot;
  }
  [[nodiscard]] size_t bytes(TensorType type) const {
    return kv_bytes(type, shape_.n_kv_heads, shape_.head_dim, length_);
  }

  Shape shape_;
  size_t length_;
  GuardedBuffer k_;
  GuardedBuffer v_;
  GuardedBuffer q_;
  KvCache cache_;
};

double worst_error(std::span<const float> found, std::span<const double> expected) {
  double worst = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(found[i]) - expected[i]);
    worst = error <= worst ? worst : error;  // NaN counts
  }
  return worst;
}

// The worst of error / bound: at most 1.
double worst_ratio(std::span<const float> found, const Problem::Reference& reference) {
  double worst = 0.0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(static_cast<double>(found[i]) - reference.out[i]);
    const double ratio = error / reference.bound[i];
    worst = ratio <= worst ? worst : ratio;  // NaN counts
  }
  return worst;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Lengths around tiles of 16, blocks of 256, and far beyond.
constexpr size_t kLengths[] = {1,   2,   15,  16,  17,  63,  64,   65,   127, 128,
                               129, 200, 255, 256, 257, 511, 1024, 1500, 4097};

TEST(Attention, OneTokenAgreesWithDoublePrecision) {
  const Shape shape;
  for (const size_t length : kLengths) {
    const Problem problem(shape, length);
    const std::vector<double> expected = problem.expected(length - 1);
    for (const Isa isa : isas()) {
      EXPECT_LE(worst_error(problem.decode(isa), expected), 2e-6)
          << isa_name(isa) << ": " << text(shape, length);
    }
  }
}

TEST(Attention, EveryHeadWidthAndGroupAgrees) {
  std::vector<Shape> shapes;
  for (const size_t head_dim : {8u, 16u, 24u, 32u, 64u, 80u, 96u, 128u, 192u, 256u, 512u}) {
    shapes.push_back({.head_dim = head_dim});
  }
  for (const size_t group : {1u, 2u, 3u, 5u, 6u, 7u, 8u, 16u, 33u, 71u}) {
    shapes.push_back({.n_heads = group, .n_kv_heads = 1, .head_dim = 32});
  }
  for (const Shape& shape : shapes) {
    const Problem problem(shape, 300);
    const std::vector<double> expected = problem.expected(299);
    const std::vector<float> first = problem.decode(Isa::kGeneric);
    EXPECT_LE(worst_error(first, expected), 2e-6) << text(shape, 300);
    for (const Isa isa : isas()) {
      EXPECT_TRUE(same_bits(problem.decode(isa), first)) << isa_name(isa) << text(shape, 300);
    }
  }
}

TEST(Attention, EveryElementTypeAgrees) {
  for (const TensorType k_type : backend::kKvTypes) {
    for (const TensorType v_type : backend::kKvTypes) {
      for (const size_t head_dim : {64u, 72u, 96u}) {
        if (!backend::check_kv(k_type, head_dim) || !backend::check_kv(v_type, head_dim)) continue;
        for (const size_t length : {1u, 16u, 33u, 321u}) {
          const Shape shape = {
              .n_heads = 6, .head_dim = head_dim, .k_type = k_type, .v_type = v_type};
          const Problem problem(shape, length);
          const std::vector<float> first = problem.decode(Isa::kGeneric);
          EXPECT_LE(worst_ratio(first, problem.reference(length - 1)), 1.0) << text(shape, length);
          for (const Isa isa : isas()) {
            EXPECT_TRUE(same_bits(problem.decode(isa), first))
                << isa_name(isa) << text(shape, length);
          }
        }
      }
    }
  }
}

TEST(Attention, BlocksOfEveryHeadWidthAndGroupAgree) {
  std::vector<Shape> shapes;
  for (const size_t head_dim : {32u, 64u, 96u, 128u, 192u, 256u, 512u}) {
    shapes.push_back({.head_dim = head_dim});
  }
  for (const size_t group : {1u, 2u, 3u, 5u, 6u, 7u, 8u, 33u, 71u}) {
    shapes.push_back({.n_heads = group, .n_kv_heads = 1, .head_dim = 32});
  }
  for (Shape& shape : shapes) {
    for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
      shape.k_type = shape.v_type = type;
      const Problem problem(shape, 300);
      const std::vector<float> first = problem.decode(Isa::kGeneric);
      EXPECT_LE(worst_ratio(first, problem.reference(299)), 1.0) << text(shape, 300);
      for (const Isa isa : isas()) {
        EXPECT_TRUE(same_bits(problem.decode(isa), first)) << isa_name(isa) << text(shape, 300);
      }
    }
  }
}

// The lengths of blocks that may be asked for, each a definition of its own.
TEST(Attention, BlocksOfPositionsMayHaveEveryLength) {
  for (const size_t block : kAttentionBlocks) {
    for (const TensorType type : {TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0}) {
      for (const size_t window : {0u, 150u}) {
        const Shape shape = {.n_heads = 2,
                             .n_kv_heads = 1,
                             .head_dim = 32,
                             .k_type = type,
                             .v_type = type,
                             .window = window,
                             .block = block};
        constexpr size_t kLength = 1100;
        const Problem problem(shape, kLength);
        const std::vector<float> all = problem.run(0, kLength, detected_isa(), 3);
        for (const size_t token : {size_t{0}, block - 1, block, kLength / 2, kLength - 1}) {
          const std::vector<float> one = problem.run(token, 1, detected_isa(), 2);
          EXPECT_LE(worst_ratio(one, problem.reference(token)), 1.0) << text(shape, token + 1);
          EXPECT_TRUE(
              same_bits(one, std::span(all).subspan(token * problem.width(), problem.width())))
              << text(shape, token + 1) << " block " << block;
        }
      }
    }
  }
}

TEST(Attention, LengthsOfBlocksDependOnThePositionAlone) {
  for (size_t position = 0; position < 300000; position += 61) {
    EXPECT_GT(next_block_change(position, 0), position);
    EXPECT_LE(div_up(position + 1, attention_block(position, 0)),
              most_attention_blocks(position + 1, 0));
    EXPECT_EQ(attention_block(position, 512), 512u);
    EXPECT_EQ(next_block_change(position, 64), SIZE_MAX);
  }
}

// A call whose tokens have blocks of two lengths gives each what it gets alone, in either way that
// calls are cut.
TEST(Attention, CallsMayStraddleAChangeOfLength) {
  const size_t change = next_block_change(0, 0);
  ASSERT_LT(change, 100'000u);
  const Shape shape = {.n_heads = 2,
                       .n_kv_heads = 1,
                       .head_dim = 32,
                       .k_type = TensorType::kQ8_0,
                       .v_type = TensorType::kF16};
  const Problem problem(shape, change + 12);
  for (const size_t n : {6u, 24u}) {
    const size_t first = change - n / 2;
    for (const size_t n_threads : {1u, 3u}) {
      const std::vector<float> all = problem.run(first, n, detected_isa(), n_threads);
      for (size_t t = 0; t < n; ++t) {
        const auto part = std::span(all).subspan(t * problem.width(), problem.width());
        EXPECT_TRUE(same_bits(problem.run(first + t, 1, detected_isa(), 2), part)) << t;
      }
    }
  }
  EXPECT_LE(worst_ratio(problem.run(change, 1, detected_isa(), 1), problem.reference(change)), 1.0);
}

// Whatever the number of KV heads and threads, windows and ends that are parts of blocks included.
TEST(Attention, ThreadsShareThePositionsEvenly) {
  for (const size_t n_kv_heads : {1u, 3u, 8u}) {
    for (const size_t n_threads : {1u, 2u, 5u, 8u}) {
      for (const size_t position : {0u, 99u, 2047u, 2048u, 40'000u}) {
        for (const size_t window : {0u, 1000u}) {
          const AttentionArgs args = {.cache = {.n_kv_heads = n_kv_heads, .head_dim = 64},
                                      .n_heads = n_kv_heads,
                                      .first_position = position,
                                      .window = window,
                                      .scratch = {}};
          const size_t seen = window == 0 ? position + 1 : std::min(position + 1, window);
          const double equal =
              static_cast<double>(seen * n_kv_heads) / static_cast<double>(n_threads);
          size_t all = 0;
          for (size_t thread = 0; thread < n_threads; ++thread) {
            const size_t n = attention_share_positions(args, thread, n_threads);
            all += n;
            EXPECT_LE(std::abs(static_cast<double>(n) - equal),
                      static_cast<double>(attention_block(position, 0)))
                << n_kv_heads << " heads, " << n_threads << " threads, position " << position;
          }
          EXPECT_EQ(all, seen * n_kv_heads);
        }
      }
    }
  }
}

// More positions than 2^18, and heads that threads cannot share evenly.
TEST(Attention, ThreeHundredThousandPositions) {
  constexpr size_t kLength = 300'000;
  const Shape shape = {.n_heads = 2,
                       .n_kv_heads = 1,
                       .head_dim = 32,
                       .k_type = TensorType::kQ8_0,
                       .v_type = TensorType::kQ4_0};
  const Problem problem(shape, kLength);
  const std::vector<float> first = problem.decode(Isa::kGeneric);
  EXPECT_LE(worst_error(first, problem.expected(kLength - 1)), 2e-6);
  for (const Isa isa : isas()) {
    for (const size_t n_threads : {1u, 3u, 8u}) {
      EXPECT_TRUE(same_bits(problem.run(kLength - 1, 1, isa, n_threads), first)) << isa_name(isa);
    }
  }
}

// A NaN or an infinity in a query or a value is neither rounded away nor lost among positions that
// are not seen.
TEST(Attention, WhatIsNoNumberStaysVisible) {
  for (const TensorType type : backend::kKvTypes) {
    const Shape shape = {
        .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .k_type = type, .v_type = type};
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const Problem problem(shape, 100);
      problem.queries()[99 * problem.width() + 3] = bad;
      const Problem spoilt(shape, 100);
      const std::vector<float> k(32, 0.5f);
      std::vector<float> v(32, 0.5f);
      v[5] = bad;
      kv_store(spoilt.cache(), 0, 40, k.data(), v.data(), Isa::kGeneric);
      for (const Isa isa : isas()) {
        const std::vector<float> out = problem.decode(isa);
        EXPECT_TRUE(std::isnan(out[0])) << isa_name(isa);
        EXPECT_FALSE(std::isnan(out[32])) << isa_name(isa);
        EXPECT_FALSE(std::isfinite(spoilt.decode(isa)[5])) << isa_name(isa);
      }
    }
  }
}

// What a token gets depends neither on the tokens beside it nor on how the work was cut.
TEST(Attention, ManyTokensAreTheSameBitsAsOneAtATime) {
  struct Variant {
    size_t group;
    size_t head_dim;
    TensorType type;
  };
  constexpr Variant kVariants[] = {{1, 40, TensorType::kF16},  {3, 40, TensorType::kF16},
                                   {7, 40, TensorType::kF16},  {1, 32, TensorType::kQ8_0},
                                   {3, 64, TensorType::kQ8_0}, {7, 32, TensorType::kQ4_0}};
  for (const auto& [group, head_dim, type] : kVariants) {
    const Shape shape = {.n_heads = 2 * group,
                         .n_kv_heads = 2,
                         .head_dim = head_dim,
                         .k_type = type,
                         .v_type = type};
    constexpr size_t kLength = 530;
    const Problem problem(shape, kLength);
    std::vector<float> singly;
    for (size_t t = 0; t < kLength; ++t) {
      const std::vector<float> one = problem.run(t, 1, detected_isa(), 1);
      singly.insert(singly.end(), one.begin(), one.end());
    }
    for (const auto& [first, n] : std::vector<std::pair<size_t, size_t>>{
             {0, kLength}, {0, 8}, {250, 8}, {253, 3}, {0, 9}, {200, 100}, {511, 19}}) {
      const auto expected = std::span(singly).subspan(first * problem.width(), n * problem.width());
      for (const size_t n_threads : {1u, 2u, 5u, 64u}) {
        EXPECT_TRUE(same_bits(problem.run(first, n, detected_isa(), n_threads), expected))
            << first << "+" << n << ", " << n_threads << " threads, " << text(shape, kLength);
      }
    }
    EXPECT_LE(worst_ratio(std::span(singly).last(problem.width()), problem.reference(kLength - 1)),
              1.0);
  }
}

TEST(Attention, ManyTokensAreTheSameBitsOnEveryIsa) {
  for (const TensorType type : {TensorType::kF32, TensorType::kQ8_0, TensorType::kQ4_0}) {
    for (const size_t window : {0u, 100u}) {
      const Shape shape = {.n_heads = 6,
                           .n_kv_heads = 2,
                           .head_dim = 64,
                           .k_type = type,
                           .v_type = type,
                           .window = window};
      const Problem problem(shape, 300);
      const std::vector<float> first = problem.run(0, 300, Isa::kGeneric, 1);
      for (const Isa isa : isas()) {
        EXPECT_TRUE(same_bits(problem.run(0, 300, isa, 3), first)) << isa_name(isa);
      }
    }
  }
}

TEST(Attention, WindowHidesWhatIsOlder) {
  for (const size_t window : {1u, 2u, 16u, 100u, 255u, 256u, 257u, 300u, 5000u}) {
    const Shape shape = {.n_heads = 3, .n_kv_heads = 1, .head_dim = 16, .window = window};
    for (const size_t length : {1u, 2u, 256u, 257u, 600u}) {
      const Problem problem(shape, length);
      const std::vector<float> all = problem.run(0, length, detected_isa(), 2);
      for (const size_t token : {size_t{0}, length / 2, length - 1}) {
        const std::vector<float> one = problem.run(token, 1, detected_isa(), 2);
        EXPECT_LE(worst_error(one, problem.expected(token)), 2e-6) << text(shape, length);
        EXPECT_TRUE(
            same_bits(one, std::span(all).subspan(token * problem.width(), problem.width())))
            << text(shape, length) << " token " << token;
      }
    }
  }
}

TEST(Attention, SoftcapBendsTheScores) {
  const Shape shape = {.n_heads = 2, .n_kv_heads = 1, .softcap = 5.0f, .spread = 8.0f};
  const Problem problem(shape, 400);
  const std::vector<float> first = problem.decode(Isa::kGeneric);
  EXPECT_LE(worst_error(first, problem.expected(399)), 1e-5);
  for (const Isa isa : isas()) EXPECT_TRUE(same_bits(problem.decode(isa), first));
}

// A sink above all scores, among them, below them, and none: over one block and several.
TEST(Attention, SinksTakeTheirShareOfTheSoftmax) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (const size_t window : {0u, 100u}) {
    const Shape shape = {
        .n_heads = 4, .n_kv_heads = 2, .window = window, .sinks = {30.0f, 1.5f, -4.0f, kNever}};
    for (const size_t length : {1u, 200u, 256u, 257u, 1024u, 1500u}) {
      const Problem problem(shape, length);
      const std::vector<float> first = problem.decode(Isa::kGeneric);
      EXPECT_LE(worst_error(first, problem.expected(length - 1)), 2e-6) << text(shape, length);
      for (const Isa isa : isas()) EXPECT_TRUE(same_bits(problem.decode(isa), first));
      const std::vector<float> all = problem.run(0, length, detected_isa(), 3);
      EXPECT_TRUE(same_bits(std::span(all).last(problem.width()), first)) << text(shape, length);
      Shape without = shape;
      without.sinks.clear();
      const std::vector<float> plain = Problem(without, length).decode(Isa::kGeneric);
      EXPECT_TRUE(
          same_bits(std::span(plain).last(shape.head_dim), std::span(first).last(shape.head_dim)))
          << "a sink of no weight changes nothing";
      EXPECT_LE(std::abs(first[0]), 1e-8f) << "a sink above all takes everything";
    }
  }
}

// Scores of hundreds: without the maximum taken off, exp would overflow or vanish.
TEST(Attention, LargeScoresStayFinite) {
  const Shape shape = {.n_heads = 2, .n_kv_heads = 1, .spread = 300.0f};
  const Problem problem(shape, 700);
  for (const Isa isa : isas()) {
    const std::vector<float> out = problem.decode(isa);
    EXPECT_TRUE(std::ranges::all_of(out, [](float x) { return std::isfinite(x); }));
  }
  EXPECT_TRUE(same_bits(problem.decode(detected_isa()), problem.decode(Isa::kGeneric)));
}

TEST(Attention, EqualKeysAverageTheValues) {
  const Shape shape = {.n_heads = 1, .n_kv_heads = 1, .head_dim = 16};
  const Problem problem(shape, 512);
  const std::vector<float> k(16, 0.0f);
  std::vector<float> v(16);
  for (size_t p = 0; p < 512; ++p) {
    std::ranges::fill(v, static_cast<float>(p));
    kv_store(problem.cache(), 0, p, k.data(), v.data(), Isa::kGeneric);
  }
  for (const float x : problem.decode(detected_isa())) EXPECT_FLOAT_EQ(x, 255.5f);
}

TEST(KvCache, KeepsWhatItRoundsAndNothingElseChanges) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    const Shape shape = {.n_kv_heads = 2, .head_dim = 24, .k_type = type, .v_type = type};
    const Problem problem(shape, 40);
    std::vector<std::byte> first;
    for (const Isa isa : isas()) {
      std::vector<float> k(24);
      std::vector<float> v(24);
      for (size_t d = 0; d < 24; ++d) {
        k[d] = 0.5f + static_cast<float>(d);
        v[d] = -0.25f - static_cast<float>(d);
      }
      std::vector<float> k_before(24);
      std::vector<float> v_before(24);
      kv_read(problem.cache(), 1, 18, k_before, v_before);
      kv_store(problem.cache(), 1, 17, k.data(), v.data(), isa);
      std::vector<float> k_found(24);
      std::vector<float> v_found(24);
      kv_read(problem.cache(), 1, 17, k_found, v_found);
      EXPECT_EQ(k_found, k);
      EXPECT_EQ(v_found, v);
      kv_read(problem.cache(), 1, 18, k_found, v_found);
      EXPECT_EQ(k_found, k_before);
      EXPECT_EQ(v_found, v_before);
      const std::byte* const begin = problem.cache().k;
      const std::vector<std::byte> all(begin, begin + kv_bytes(type, 2, 24, 40));
      if (first.empty()) first = all;
      EXPECT_EQ(all, first) << isa_name(isa);
    }
  }
}

// What a cache of blocks keeps: bytes that come back as they went in, whatever lies beside them,
// and numbers within half a step of what was stored.
TEST(KvCache, BlocksComeBackToTheBit) {
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
    const Shape shape = {.n_kv_heads = 2, .head_dim = 64, .k_type = type, .v_type = type};
    const Problem problem(shape, 40);
    const size_t bytes = row_bytes(type, 64);
    RandomStream random(5);
    std::vector<std::vector<std::byte>> rows(4 * 40, std::vector<std::byte>(bytes));
    for (std::vector<std::byte>& row : rows) {
      for (std::byte& b : row) b = static_cast<std::byte>(random.bits());
    }
    for (size_t i = 0; i < 80; ++i) {
      kv_put(problem.cache(), i / 40, i % 40, rows[2 * i].data(), rows[2 * i + 1].data());
    }
    for (size_t i = 0; i < 80; ++i) {
      std::vector<std::byte> k(bytes);
      std::vector<std::byte> v(bytes);
      kv_get(problem.cache(), i / 40, i % 40, k.data(), v.data());
      EXPECT_EQ(k, rows[2 * i]) << i;
      EXPECT_EQ(v, rows[2 * i + 1]) << i;
    }
    std::vector<float> x(64);
    for (float& value : x) value = static_cast<float>(random.bell());
    std::vector<float> k(64);
    std::vector<float> v(64);
    kv_store(problem.cache(), 1, 17, x.data(), x.data(), Isa::kGeneric);
    kv_read(problem.cache(), 1, 17, k, v);
    EXPECT_EQ(k, v);
    for (size_t b = 0; b < 64; b += 32) {
      float most = 0;
      for (size_t d = b; d < b + 32; ++d) most = std::max(most, std::abs(x[d]));
      // Q4_0 has no code for the largest magnitude of the other sign: a whole step there.
      const float step = most / (type == TensorType::kQ8_0 ? 127.0f : 8.0f) * 1.001f;
      for (size_t d = b; d < b + 32; ++d) {
        EXPECT_LE(std::abs(k[d] - x[d]), type == TensorType::kQ8_0 ? step / 2 : step) << d;
      }
    }
  }
}

TEST(KvCache, BytesAreWholeTiles) {
  EXPECT_EQ(kv_bytes(TensorType::kF16, 2, 64, 17), 2u * 32 * 64 * 2);
  EXPECT_EQ(kv_bytes(TensorType::kF32, 1, 8, 1), 16u * 8 * 4);
  EXPECT_EQ(kv_bytes(TensorType::kQ8_0, 3, 64, 17), 3u * 32 * 68);
  EXPECT_EQ(kv_bytes(TensorType::kQ4_0, 3, 64, 17), 3u * 32 * 36);
}

}  // namespace
}  // namespace godwit::cpu
