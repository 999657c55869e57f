#include "testing/kernels/attention_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backend/cpu/attention_block.h"
#include "base/small_letters.h"

namespace godwit::testing {
namespace {

constexpr size_t kLengths[] = {1,   2,   63,  64,   65,   127,   128,   129,   200,
                               255, 256, 257, 1024, 1500, 12287, 12288, 12289, 40000};
constexpr size_t kQuickLengths[] = {1, 2, 65, 128, 255, 257, 1500};
// Sharing of KV heads and widths of heads, at a length of two blocks and a rest.
struct Heads {
  size_t n_heads;
  size_t n_kv_heads;
  size_t head_dim;
};
constexpr Heads kHeads[] = {{1, 1, 64},  {2, 2, 96},  {3, 1, 32},  {8, 1, 128},
                            {10, 2, 64}, {14, 2, 64}, {32, 4, 32}, {4, 1, 256}};
constexpr size_t kHeadsLength = 600;
constexpr size_t kGroups[] = {1, 2, 3, 7, 8, 9, 33};

// Of n positions' share, as a part of it. 1 is exact in a float type, so the count is, and the
// division rounds; what a block type makes of it rounds once per position.
double counting_bound(TensorType type, size_t n) {
  const bool floats = tensor_geometry(type).block_weights == 1;
  return floats ? 0x1p-22 : static_cast<double>(n + 4) * 0x1p-24;
}

// A value's own weight is 1, and the others' 0: it comes out to the bit, unless weights are rounded
// at a scale that larger values beside it make, of 32639 steps; it is off by half of one at most.
double needle_bound(TensorType type) {
  constexpr double kMostValue = 3.5;  // of RandomStream::bell()
  if (tensor_geometry(type).block_weights == 1) return 0.0;
  return 0.5 * kMostValue / 32639 + kAttentionBound;
}

struct Tallies {
  Tallies(const AttentionSubject& way, const std::string& name, TensorType v_type)
      : subject(&way),
        near_double(name, "double", kAttentionBound),
        counting(name, "counting", counting_bound(v_type, 0)),
        needle(name, "needle", needle_bound(v_type)),
        bits(name, "bits", 0.0),
        threads(name, "threads", 0.0),
        rows(name, "rows", 0.0) {}

  const AttentionSubject* subject;
  FindingTally near_double;
  FindingTally counting;
  FindingTally needle;
  FindingTally bits;
  FindingTally threads;
  FindingTally rows;
};

class Checker {
 public:
  Checker(const AttentionCheck& check, const ThreadCounts& threads)
      : check_(check), threads_(threads) {
    const std::string k = small_letters(tensor_type_name(check.k_type));
    const std::string v = small_letters(tensor_type_name(check.v_type));
    const std::string types = k == v ? k : k + "/" + v;
    for (const AttentionSubject& subject : check.subjects) {
      tallies_.emplace_back(subject, fmt::format("attention {} {}", types, subject.name),
                            check.v_type);
    }
  }

  void run() {
    const bool full = check_.extent == CheckExtent::kFull;
    for (const size_t length : full ? std::span<const size_t>(kLengths) : kQuickLengths) {
      compare(shape({4, 2, 64}, length));
    }
    for (const Heads& heads : kHeads) compare(shape(heads, kHeadsLength));
    count(full ? 12289 : 1500);
    if (full) count(40000);
    seek(full ? 12289 : 600);
    group();
  }

  void report(const FindingSink& sink) const {
    for (const Tallies& t : tallies_) {
      for (const FindingTally* tally :
           {&t.near_double, &t.counting, &t.needle, &t.bits, &t.threads, &t.rows}) {
        sink(tally->finding());
      }
    }
  }

 private:
  [[nodiscard]] AttentionShape shape(const Heads& heads, size_t length) const {
    return {.n_heads = heads.n_heads,
            .n_kv_heads = heads.n_kv_heads,
            .head_dim = heads.head_dim,
            .k_type = check_.k_type,
            .v_type = check_.v_type,
            .length = length};
  }

  void compare(const AttentionShape& shape) {
    const AttentionProblem problem(shape);
    const AttentionProblem::Answer answer = problem.answer();
    const std::vector<float> portable = problem.run(portable_, threads_.one());
    const auto place = [&] { return text(shape); };
    for (Tallies& t : tallies_) {
      const std::vector<float> out = problem.run(*t.subject, threads_.one());
      t.near_double.begin_case();
      for (size_t i = 0; i < out.size(); ++i) {
        t.near_double.add(std::fabs(static_cast<double>(out[i]) - answer.out[i]), answer.bound[i],
                          [&] { return fmt::format("{}, out[{}]", text(shape), i); });
      }
      t.bits.begin_case();
      t.bits.add_bits(out, portable, place);
      t.threads.begin_case();
      threads_.for_each([&](ThreadPool& pool) {
        t.threads.add_bits(problem.run(*t.subject, pool), out,
                           [&] { return fmt::format("{}, {} threads", text(shape), pool.size()); });
      });
    }
  }

  // Values are one-hot by the position's place in the history, so that output d is the share of
  // positions with that place, times what the cache made of 1.
  void count(size_t length) {
    const AttentionShape s = shape({4, 2, 64}, length);
    AttentionProblem problem(s);
    const std::vector<float> zero(s.head_dim, 0.0f);
    std::vector<double> expected(s.head_dim, 0.0);
    for (size_t position = 0; position < length; ++position) {
      const size_t place = position * s.head_dim / length;
      std::vector<float> v(s.n_kv_heads * s.head_dim, 0.0f);
      for (size_t head = 0; head < s.n_kv_heads; ++head) v[head * s.head_dim + place] = 1.0f;
      problem.store(position, zero, v);
      expected[place] += static_cast<double>(problem.load(position).v[place]);
    }
    const double bound = counting_bound(check_.v_type, length / s.head_dim);
    for (Tallies& t : tallies_) {
      t.counting.begin_case();
      const std::vector<float> out = problem.run(*t.subject, threads_.one());
      for (size_t i = 0; i < out.size(); ++i) {
        const double share = expected[i % s.head_dim] / static_cast<double>(length);
        const double unit = share > 0.0 ? share : 1.0;
        t.counting.add(std::fabs(static_cast<double>(out[i]) - share) / unit, bound,
                       [&] { return fmt::format("{}, out[{}]", text(s), i); });
      }
    }
  }

  // Keys are 0 but for one, whose score is so large that exp of the others' difference to it is 0:
  // then the output is that position's value.
  void seek(size_t length) {
    const AttentionShape s = shape({4, 2, 64}, length);
    AttentionProblem problem(s);
    std::ranges::fill(problem.queries(), 16.0f);
    const std::vector<float> zero(s.head_dim, 0.0f);
    const std::vector<float> loud(s.head_dim, 16.0f);
    for (size_t position = 0; position < length; ++position) {
      problem.store(position, zero, problem.load(position).v);
    }
    for (const size_t position : needle_positions(length)) {
      const std::vector<float> v = problem.load(position).v;
      problem.store(position, loud, v);
      const std::vector<float> held = problem.load(position).v;
      const size_t group = s.n_heads / s.n_kv_heads * s.head_dim;
      std::vector<float> expected(problem.width());
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = held[i / group * s.head_dim + i % s.head_dim];
      }
      for (Tallies& t : tallies_) {
        t.needle.begin_case();
        const std::vector<float> out = problem.run(*t.subject, threads_.one());
        for (size_t i = 0; i < out.size(); ++i) {
          t.needle.add(std::fabs(static_cast<double>(out[i]) - static_cast<double>(expected[i])),
                       needle_bound(check_.v_type),
                       [&] { return fmt::format("{}, needle at {}", text(s), position); });
        }
      }
      problem.store(position, zero, v);
    }
  }

  [[nodiscard]] static std::vector<size_t> needle_positions(size_t length) {
    std::vector<size_t> found = {0, length - 1};
    const size_t block = cpu::attention_block(length - 1, 0);
    for (size_t edge = block; edge < length; edge += block) {
      for (const size_t position : {edge - 1, edge, edge + 1}) {
        if (position < length) found.push_back(position);
      }
    }
    return found;
  }

  // A token's bits do not depend on the tokens it shares a call with.
  void group() {
    AttentionShape s = shape({6, 2, 64}, 530);
    s.n_tokens = 40;
    const AttentionProblem problem(s);
    for (Tallies& t : tallies_) {
      std::vector<float> singly;
      for (size_t token = 0; token < s.n_tokens; ++token) {
        const std::vector<float> one = problem.run(*t.subject, threads_.one(), {token, 1});
        singly.insert(singly.end(), one.begin(), one.end());
      }
      for (const size_t n : kGroups) {
        t.rows.begin_case();
        const size_t first = s.n_tokens - n;
        t.rows.add_bits(problem.run(*t.subject, threads_.one(), {first, n}),
                        std::span(singly).subspan(first * problem.width(), n * problem.width()),
                        [&] { return fmt::format("{}, {} tokens", text(s), n); });
      }
    }
  }

  const AttentionCheck& check_;
  const ThreadCounts& threads_;
  const AttentionSubject portable_ = {"generic", Isa::kGeneric, run_attention};
  std::vector<Tallies> tallies_;
};

}  // namespace

std::vector<AttentionSubject> attention_subjects(Isa ceiling) {
  std::vector<AttentionSubject> subjects;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa <= ceiling) subjects.push_back({std::string(isa_name(isa)), isa, run_attention});
  }
  return subjects;
}

void check_attention(const AttentionCheck& check, const ThreadCounts& threads,
                     const FindingSink& sink) {
  Checker checker(check, threads);
  checker.run();
  checker.report(sink);
}

}  // namespace godwit::testing
