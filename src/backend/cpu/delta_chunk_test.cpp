// The chunked rule against the rule itself, row by row in double precision.
#include "backend/cpu/delta_chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/vector_ops.h"
#include "base/random.h"
#include "os/cpu_features.h"

namespace godwit::cpu {
namespace {

constexpr size_t kValueHeads = 2;  // of the one key head

// Rows of a key head with its value heads.
struct Sequence {
  size_t d;
  size_t n;
  std::vector<float> keys;          // [n, d], of unit length
  std::vector<float> queries;       // [n, d], of unit length
  std::vector<float> values;        // [n, kValueHeads, d]
  std::vector<double> log_decays;   // [kValueHeads, n]
  std::vector<float> betas;         // [kValueHeads, n]
  std::vector<float> first_matrix;  // [kValueHeads, d, d]
};

Sequence make_sequence(size_t d, size_t n) {
  RandomStream random(d * 1000 + n);
  const auto unit_rows = [&] {
    std::vector<float> rows(n * d);
    for (size_t t = 0; t < n; ++t) {
      std::vector<double> row(d);
      double squares = 0;
      for (double& x : row) {
        x = random.bell();
        squares += x * x;
      }
      for (size_t i = 0; i < d; ++i) {
        rows[t * d + i] = static_cast<float>(row[i] / std::sqrt(squares));
      }
    }
    return rows;
  };
  Sequence s{.d = d,
             .n = n,
             .keys = unit_rows(),
             .queries = unit_rows(),
             .values = {},
             .log_decays = {},
             .betas = {},
             .first_matrix = {}};
  for (size_t i = 0; i < n * kValueHeads * d; ++i) {
    s.values.push_back(static_cast<float>(random.bell()));
  }
  for (size_t i = 0; i < kValueHeads * n; ++i) {
    // From hardly any decay to one that forgets everything at once.
    s.log_decays.push_back(i % 13 == 5 ? -200.0 : -0.3 * random.unit());
    s.betas.push_back(static_cast<float>(random.unit()));
  }
  for (size_t i = 0; i < kValueHeads * d * d; ++i) {
    s.first_matrix.push_back(static_cast<float>(random.bell()));
  }
  return s;
}

struct Outcome {
  std::vector<float> out;     // [n, kValueHeads, d]
  std::vector<float> matrix;  // [kValueHeads, d, d], before the last, unfinished chunk
};

// `group` rows a call, cut where chunks end.
Outcome run_chunked(const Sequence& s, Isa isa, size_t group) {
  const VectorOps& ops = vector_ops(isa);
  const size_t d = s.d;
  Outcome outcome{.out = std::vector<float>(s.n * kValueHeads * d), .matrix = s.first_matrix};
  std::vector<float> keys(d * kDeltaChunk);
  std::vector<float> changes(kValueHeads * kDeltaChunk * d);
  std::vector<double> sums(kValueHeads * kDeltaChunk);
  std::vector<float> dots(2 * kDeltaChunk * kDeltaChunk);
  std::vector<float> scratch(delta_scratch_floats(d));
  for (size_t t = 0; t < s.n;) {
    const size_t slot = t % kDeltaChunk;
    const size_t n = std::min({group, kDeltaChunk - slot, s.n - t});
    const auto offset = [&](size_t row) { return static_cast<std::ptrdiff_t>(row * d); };
    std::vector<float> both(s.keys.begin() + offset(t), s.keys.begin() + offset(t + n));
    both.insert(both.end(), s.queries.begin() + offset(t), s.queries.begin() + offset(t + n));
    const DeltaRows rows{
        .keys_queries = both.data(), .dots = dots.data(), .slot = slot, .n = n, .d = d};
    join_keys(ops, rows, keys.data(), dots.data());
    for (size_t h = 0; h < kValueHeads; ++h) {
      walk_delta_rows(ops, rows,
                      {.v = s.values.data() + (t * kValueHeads + h) * d,
                       .v_stride = kValueHeads * d,
                       .log_decays = s.log_decays.data() + h * s.n + t,
                       .betas = s.betas.data() + h * s.n + t},
                      {.keys = keys.data(),
                       .matrix = outcome.matrix.data() + h * d * d,
                       .changes = changes.data() + h * kDeltaChunk * d,
                       .log_decays = sums.data() + h * kDeltaChunk},
                      scratch.data(), outcome.out.data() + (t * kValueHeads + h) * d,
                      kValueHeads * d);
      if (slot + n < kDeltaChunk) continue;
      fold_delta_chunk(ops, d,
                       {.keys = keys.data(),
                        .matrix = outcome.matrix.data() + h * d * d,
                        .changes = changes.data() + h * kDeltaChunk * d,
                        .log_decays = sums.data() + h * kDeltaChunk},
                       scratch.data());
    }
    t += n;
  }
  return outcome;
}

// The rule of one head as it stands in program/step.h, and how far the chunked form may be from it.
// What that computes satisfies the rule exactly but for an error e_t of each change d_t, and of the
// fold; as the rule never lengthens an error (keys have length 1), they add up at worst. With u the
// unit of rounding, per element: S k errs by at most (d + 2) u |S|; each weight by (d + 8) u (the
// dot of two keys, an exponential, a product), times |d_i|; their sum by C u of itself.
struct Expected {
  std::vector<double> out;    // [n, d]
  std::vector<double> bound;  // [n]
};

Expected run_rule(const Sequence& s, size_t head) {
  const size_t d = s.d;
  const double unit = std::ldexp(1.0, -24);
  const auto terms = static_cast<double>(d + 2 * kDeltaChunk + 8);
  std::vector<double> m(s.first_matrix.begin() + static_cast<std::ptrdiff_t>(head * d * d),
                        s.first_matrix.begin() + static_cast<std::ptrdiff_t>((head + 1) * d * d));
  Expected expected;
  double error = 0;
  double changed = 0;  // sum of max|d_i| over the chunk
  for (size_t t = 0; t < s.n; ++t) {
    if (t % kDeltaChunk == 0) changed = 0;
    const float* const k = s.keys.data() + t * d;
    const float* const q = s.queries.data() + t * d;
    const double decay = std::exp(s.log_decays[head * s.n + t]);
    const auto beta = static_cast<double>(s.betas[head * s.n + t]);
    double longest = 0;  // column of S
    double largest = 0;  // of the changes
    for (size_t j = 0; j < d; ++j) {
      double predicted = 0;
      double squares = 0;
      for (size_t i = 0; i < d; ++i) {
        squares += m[i * d + j] * m[i * d + j];
        m[i * d + j] *= decay;
        predicted += m[i * d + j] * static_cast<double>(k[i]);
      }
      const auto v = static_cast<double>(s.values[(t * kValueHeads + head) * d + j]);
      const double change = beta * (v - predicted);
      double read = 0;
      for (size_t i = 0; i < d; ++i) {
        m[i * d + j] += change * static_cast<double>(k[i]);
        read += m[i * d + j] * static_cast<double>(q[i]);
      }
      expected.out.push_back(read);
      longest = std::max(longest, std::sqrt(squares));
      largest = std::max(largest, std::abs(change) + std::abs(v));
    }
    changed += largest;
    const double local = terms * unit * (longest + changed);
    error += 2 * local;  // the change, and its part of the fold
    expected.bound.push_back(error + local);
  }
  return expected;
}

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa <= detected_isa()) found.push_back(isa);
  }
  return found;
}

TEST(DeltaChunk, ComputesTheRuleWithinItsBound) {
  for (const size_t d : {size_t{1}, size_t{8}, size_t{24}, size_t{128}}) {
    const Sequence s = make_sequence(d, 3 * kDeltaChunk + 5);
    const Outcome found = run_chunked(s, Isa::kGeneric, kDeltaChunk);
    for (size_t h = 0; h < kValueHeads; ++h) {
      const Expected expected = run_rule(s, h);
      for (size_t t = 0; t < s.n; ++t) {
        for (size_t j = 0; j < d; ++j) {
          ASSERT_NEAR(static_cast<double>(found.out[(t * kValueHeads + h) * d + j]),
                      expected.out[t * d + j], expected.bound[t])
              << "d " << d << " head " << h << " row " << t << " column " << j;
        }
      }
    }
  }
}

TEST(DeltaChunk, IsTheSameForEveryGroupingAndInstructionSet) {
  for (const size_t d : {size_t{8}, size_t{40}, size_t{128}}) {
    const Sequence s = make_sequence(d, 2 * kDeltaChunk + 7);
    const Outcome expected = run_chunked(s, Isa::kGeneric, 1);
    for (const Isa isa : isas()) {
      for (const size_t group : {size_t{1}, size_t{3}, size_t{6}, kDeltaChunk}) {
        const Outcome found = run_chunked(s, isa, group);
        EXPECT_EQ(found.out, expected.out) << isa_name(isa) << " d " << d << " by " << group;
        EXPECT_EQ(found.matrix, expected.matrix) << isa_name(isa) << " d " << d << " by " << group;
      }
    }
  }
}

}  // namespace
}  // namespace godwit::cpu
