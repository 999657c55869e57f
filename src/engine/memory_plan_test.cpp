#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include "engine/planned_backend.h"
#include "os/memory.h"

namespace godwit::engine {
namespace {

// Needs what the test says; nothing else of it is ever called.
class NeedyBackend final : public backend::Backend {
 public:
  NeedyBackend(uint64_t weight_bytes, uint64_t bytes_per_position)
      : NeedyBackend(weight_bytes, bytes_per_position, 0, 0) {}
  NeedyBackend(uint64_t weight_bytes, uint64_t bytes_per_position, uint64_t state_bytes,
               uint64_t scratch_bytes)
      : weight_bytes_(weight_bytes),
        bytes_per_position_(bytes_per_position),
        state_bytes_(state_bytes),
        scratch_bytes_(scratch_bytes) {}

  std::string_view name() const override { return "needy"; }
  Status supports(const program::Step&) const override { return {}; }
  Result<backend::MemoryNeed> memory_need(const program::Program&,
                                          const backend::ContextSettings& settings) const override {
    return backend::MemoryNeed{.weight_bytes = weight_bytes_,
                               .kv_bytes = bytes_per_position_ * settings.n_positions,
                               .state_bytes = state_bytes_,
                               .scratch_bytes = scratch_bytes_};
  }
  Status load(const program::Program&, std::span<const std::span<const std::byte>>,
              const backend::Progress&) override {
    return fail("unused");
  }
  Result<backend::ContextId> make_context(const backend::ContextSettings&) override {
    return fail("unused");
  }
  void release_context(backend::ContextId) override {}
  Status run(backend::ContextId, std::span<const program::Row>, program::StepRange) override {
    return fail("unused");
  }
  void read(backend::ContextId, program::BufferId, std::span<float>) const override {}
  void write(backend::ContextId, program::BufferId, std::span<const float>) override {}
  std::span<const float> logits(backend::ContextId) const override { return {}; }
  backend::StateShape state_shape(backend::ContextId) const override { return {}; }
  void export_state(backend::ContextId, backend::PositionRange,
                    backend::StateTarget) const override {}
  void import_state(backend::ContextId, backend::PositionRange, backend::StateSource) override {}
  std::string describe() const override { return "needy"; }

 private:
  uint64_t weight_bytes_;
  uint64_t bytes_per_position_;
  uint64_t state_bytes_;
  uint64_t scratch_bytes_;
};

constexpr uint64_t kContext = 4096;

program::Program trained_for(uint64_t positions) {
  program::Program program;
  program.trained_context = positions;
  return program;
}

TEST(MemoryPlan, TakesTheTrainedContextWhereItFits) {
  const NeedyBackend backend(1 << 20, 1 << 10);
  const auto plan = plan_memory(backend, trained_for(kContext), {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->n_context, kContext);
  EXPECT_EQ(plan->total(), (1u << 20) + kContext * 1024);
}

TEST(MemoryPlan, ShrinksTheTrainedContextButNotAnAskedOne) {
  // One and a half times of what there is at the full context.
  const uint64_t per_position = available_memory_bytes() * 3 / 2 / kContext;
  const NeedyBackend backend(1 << 20, per_position);
  const auto plan = plan_memory(backend, trained_for(kContext), {});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_LT(plan->n_context, kContext * 3 / 4);
  EXPECT_GT(plan->n_context, kContext / 2);
  EXPECT_LE(plan->total(), plan->available_bytes);

  const auto refused = plan_memory(backend, trained_for(1), {.n_context = kContext, .context = {}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("a context of 4096 positions does not fit in memory"),
            std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("would fit"), std::string::npos);
}

TEST(MemoryPlan, RefusesWeightsThatDoNotFit) {
  const NeedyBackend backend(available_memory_bytes() * 2, 1);
  const auto refused = plan_memory(backend, trained_for(kContext), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the model does not fit in memory"), std::string::npos);
}

TEST(MemoryPlan, CountsStatesAndScratchToo) {
  const PlanRequest request{.n_context = 0, .context = {}, .available_bytes = uint64_t{1128} << 20};
  for (const uint64_t state_mib : {uint64_t{0}, uint64_t{300}, uint64_t{600}}) {
    const uint64_t scratch_mib = 600 - state_mib;
    const NeedyBackend backend(300 << 20, 64 << 10, state_mib << 20, scratch_mib << 20);
    const auto plan = plan_memory(backend, trained_for(kContext), request);
    ASSERT_TRUE(plan) << plan.error().message;
    // 100 MiB are left, at 64 KiB for a position.
    EXPECT_EQ(plan->n_context, 1536u) << state_mib;
  }
}

TEST(MemoryPlan, FormatsBytesForPeople) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(uint64_t{3} << 30), "3.00 GiB");
}

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(ShrunkExperts, TakeWhatTheOthersLeave) {
  const backend::MemoryNeed need{.weight_bytes = 1000 * kMiB,
                                 .expert_bytes = 800 * kMiB,
                                 .kv_bytes = 50 * kMiB,
                                 .state_bytes = 20 * kMiB,
                                 .scratch_bytes = 30 * kMiB};
  const uint64_t overhead = 128 * kMiB;
  EXPECT_EQ(shrunk_expert_mib(need, overhead + 1100 * kMiB), 0u);
  EXPECT_EQ(shrunk_expert_mib(need, overhead + 1099 * kMiB), 799u);
  EXPECT_EQ(shrunk_expert_mib(need, overhead + 400 * kMiB), 100u);
  EXPECT_EQ(shrunk_expert_mib(need, overhead + 200 * kMiB), 0u);
  EXPECT_EQ(shrunk_expert_mib(need, 0), 0u);
}

TEST(MemoryPlanText, SaysWhatTheModelHas) {
  MemoryPlan plan{.n_context = 10,
                  .need = {.weight_bytes = 300 * kMiB, .kv_bytes = 5 * kMiB, .scratch_bytes = kMiB},
                  .available_bytes = 0};
  EXPECT_EQ(describe(plan, 0),
            "dense weights 300.0 MiB + KV 5.0 MiB + scratch 1.0 MiB = 306.0 MiB");
  EXPECT_EQ(plan.resident(), 0u) << "unknown";
  plan.process_bytes = 30 * kMiB;
  EXPECT_EQ(describe(plan, 0),
            "dense weights 300.0 MiB + KV 5.0 MiB + scratch 1.0 MiB = 306.0 MiB, with the program "
            "336.0 MiB resident");
  plan.process_bytes = 0;
  plan.need.expert_bytes = 100 * kMiB;
  plan.need.state_bytes = 2 * kMiB;
  EXPECT_EQ(describe(plan, 400 * kMiB),
            "dense weights 200.0 MiB + experts 100.0 MiB (of 400.0 MiB) + KV 5.0 MiB + state "
            "2.0 MiB + scratch 1.0 MiB = 308.0 MiB");
}

}  // namespace
}  // namespace godwit::engine
