// The check of attention finds each mistake that is planted, and nothing wrong with attention
// itself.
#include "testing/kernels/attention_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/kv_rounding.h"

namespace godwit::testing {
namespace {

using cpu::AttentionArgs;

void see_half(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  AttentionArgs wrong = args;
  wrong.window = std::max<size_t>(1, (args.first_position + args.n_tokens) / 2);
  run_attention(wrong, pool, isa);
}

void see_last_128(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  AttentionArgs wrong = args;
  wrong.window = 128;
  run_attention(wrong, pool, isa);
}

void miss_the_oldest(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  AttentionArgs wrong = args;
  if (args.n_tokens == 1) wrong.window = std::max<size_t>(1, args.first_position);
  run_attention(wrong, pool, isa);
}

void miss_the_newest(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  AttentionArgs wrong = args;
  if (args.first_position > 0) --wrong.first_position;
  run_attention(wrong, pool, isa);
}

// One share of the positions is never computed; its place in the scratch adds nothing.
void drop_a_split(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  if (args.n_tokens > 8) return run_attention(args, pool, isa);
  std::memset(args.scratch.data(), 0, args.scratch.size());
  for (const size_t share : {0u, 1u, 3u, 4u}) cpu::attention_run(args, share, 5, isa);
  cpu::attention_merge(args, 0, 1, isa);
}

// Head h reads KV head h mod n in place of h / (heads per KV head).
void confuse_heads(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  const size_t dim = args.cache.head_dim;
  const size_t n_kv = args.cache.n_kv_heads;
  const size_t group = args.n_heads / n_kv;
  std::vector<float> q(args.n_tokens * args.n_heads * dim);
  std::vector<float> out(q.size());
  const auto place = [&](size_t head) { return head % n_kv * group + head / n_kv; };
  for (size_t i = 0; i < args.n_tokens * args.n_heads; ++i) {
    const size_t t = i / args.n_heads;
    const size_t head = i % args.n_heads;
    std::copy_n(args.q + t * args.q_stride + head * dim, dim,
                &q[(t * args.n_heads + place(head)) * dim]);
  }
  AttentionArgs wrong = args;
  wrong.q = q.data();
  wrong.q_stride = args.n_heads * dim;
  wrong.out = out.data();
  wrong.out_stride = args.n_heads * dim;
  run_attention(wrong, pool, isa);
  for (size_t i = 0; i < args.n_tokens * args.n_heads; ++i) {
    const size_t t = i / args.n_heads;
    const size_t head = i % args.n_heads;
    std::copy_n(&out[(t * args.n_heads + place(head)) * dim], dim,
                args.out + t * args.out_stride + head * dim);
  }
}

void scale_too_much(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  AttentionArgs wrong = args;
  wrong.scale *= 1.0001f;
  run_attention(wrong, pool, isa);
}

void depend_on_threads(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  run_attention(args, pool, isa);
  if (pool.size() == 7) args.out[0] = std::nextafter(args.out[0], 9.0f);
}

void depend_on_neighbours(const AttentionArgs& args, ThreadPool& pool, Isa isa) {
  run_attention(args, pool, isa);
  if (args.n_tokens == 9) args.out[1] = std::nextafter(args.out[1], 9.0f);
}

std::vector<Finding> findings_of(void (*run)(const AttentionArgs&, ThreadPool&, Isa),
                                 TensorType type) {
  const ThreadCounts threads;
  const AttentionSubject subject = {"planted", Isa::kGeneric, run};
  std::vector<Finding> findings;
  check_attention({.subjects = {&subject, 1}, .k_type = type, .v_type = type}, threads,
                  [&](const Finding& f) { findings.push_back(f); });
  return findings;
}

bool property_holds(const std::vector<Finding>& findings, std::string_view property) {
  const auto found = std::ranges::find(findings, property, &Finding::property);
  EXPECT_NE(found, findings.end()) << property;
  return found != findings.end() && found->holds();
}

TEST(AttentionCheck, FindsNothingWrongWithAttention) {
  const ThreadCounts threads;
  const std::vector<AttentionSubject> subjects = attention_subjects(detected_isa());
  for (const TensorType type : backend::kKvTypes) {
    check_attention({.subjects = subjects, .k_type = type, .v_type = type}, threads,
                    [](const Finding& f) {
                      EXPECT_TRUE(f.holds()) << f.subject << ' ' << f.property << ": " << f.error
                                             << ", bound " << f.bound << " at " << f.at;
                      EXPECT_GT(f.n_cases, 0u) << f.subject << ' ' << f.property;
                    });
  }
}

TEST(AttentionCheck, FindsPositionsThatAreNotSeen) {
  for (const auto run : {see_half, see_last_128, miss_the_oldest, miss_the_newest, drop_a_split}) {
    const std::vector<Finding> findings = findings_of(run, TensorType::kF16);
    EXPECT_FALSE(property_holds(findings, "double"));
    EXPECT_FALSE(property_holds(findings, "counting"));
    EXPECT_FALSE(property_holds(findings, "needle"));
  }
}

TEST(AttentionCheck, FindsTheWrongHeadsAndTheWrongScale) {
  const std::vector<Finding> heads = findings_of(confuse_heads, TensorType::kF32);
  EXPECT_FALSE(property_holds(heads, "double"));
  EXPECT_FALSE(property_holds(heads, "needle"));
  EXPECT_FALSE(property_holds(findings_of(scale_too_much, TensorType::kF32), "double"));
}

TEST(AttentionCheck, FindsBitsThatDependOnThreadsAndNeighbours) {
  const std::vector<Finding> threads = findings_of(depend_on_threads, TensorType::kF32);
  EXPECT_TRUE(property_holds(threads, "double"));
  EXPECT_TRUE(property_holds(threads, "bits"));
  EXPECT_FALSE(property_holds(threads, "threads"));
  EXPECT_FALSE(property_holds(findings_of(depend_on_neighbours, TensorType::kF32), "rows"));
}

}  // namespace
}  // namespace godwit::testing
