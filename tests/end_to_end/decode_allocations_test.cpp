// Decoding a token asks for no memory: neither the backend's threads, nor the session, nor the
// sampler. The executable replaces malloc and mmap (allocation_count.h).
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "allocation_count.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "os/memory.h"
#include "sampling/sampler.h"
#include "testing/models/tiny_hybrid.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit {
namespace {

constexpr size_t kWarmUp = 4;
constexpr size_t kSteps = 300;  // past blocks of attention, chunks of the delta rule

struct Model {
  std::string name;
  Status (*write)(const std::filesystem::path& path);
  TensorType kv = TensorType::kF16;
};

void PrintTo(const Model& model, std::ostream* out);
void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

Status write_hybrid(const std::filesystem::path& path) {
  return testing::write_tiny_hybrid(path, {});
}
template <TensorType kType>
Status write_dense(const std::filesystem::path& path) {
  return testing::write_tiny_llama(path, {.type = kType});
}

class DecodeAllocations : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const std::filesystem::path path = folder_.file("model.gguf");
    ASSERT_TRUE(GetParam().write(path));
    engine::EngineSettings settings;
    settings.model = path;
    settings.n_threads = 3;
    settings.k_type = GetParam().kv;
    settings.v_type = GetParam().kv;
    Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::load(settings, {});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
  }

  // Of kSteps tokens, each sampled and appended, after a few that are not counted.
  void expect_none(const sampling::SamplerSettings& settings) {
    Result<engine::Session> session = engine_->new_session();
    Result<sampling::Sampler> sampler = sampling::Sampler::create(settings, nullptr);
    ASSERT_TRUE(session && sampler);
    const std::vector<TokenId> prompt(20, TokenId{65});
    ASSERT_TRUE(session->set_prompt(prompt, {}));
    const auto step = [&] {
      const Position position{static_cast<int32_t>(session->tokens().size())};
      const TokenId token = sampler->sample(session->logits(), session->tokens(), position);
      return session->append(token).has_value();
    };
    for (size_t i = 0; i < kWarmUp; ++i) ASSERT_TRUE(step());
    // GODWIT_SHOW_ALLOCATIONS=N prints the first N.
    const char* const shown = std::getenv("GODWIT_SHOW_ALLOCATIONS");
    testing::show_allocations(shown == nullptr ? 0 : static_cast<size_t>(std::atoi(shown)));
    const testing::AllocationCount allocations;
    size_t n_done = 0;
    while (n_done < kSteps && step()) ++n_done;
    const size_t n = allocations.count();
    testing::show_allocations(0);
    EXPECT_EQ(n_done, kSteps);
    EXPECT_EQ(n, 0u) << "GODWIT_SHOW_ALLOCATIONS=9 shows whose they are";
  }

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<engine::Engine> engine_;
};

TEST_P(DecodeAllocations, GreedyStepsMakeNone) {
  sampling::SamplerSettings settings;
  settings.temperature = 0.0f;
  expect_none(settings);
}

TEST_P(DecodeAllocations, SampledStepsMakeNone) {
  sampling::SamplerSettings settings;
  settings.seed = 7;
  settings.repeat_penalty = 1.1f;
  expect_none(settings);
}

INSTANTIATE_TEST_SUITE_P(Models, DecodeAllocations,
                         ::testing::Values(Model{"dense_q8_0", write_dense<TensorType::kQ8_0>},
                                           Model{"dense_f16", write_dense<TensorType::kF16>,
                                                 TensorType::kF32},
                                           Model{"hybrid_with_experts", write_hybrid}),
                         [](const auto& param) { return param.param.name; });

TEST(AllocationCount, CountsEveryWayToAsk) {
  const testing::AllocationCount allocations;
  const auto one = std::make_unique<int>(1);
  EXPECT_EQ(allocations.count(), 1u) << one.get();
  const std::vector<int> two(3, *one);
  EXPECT_EQ(allocations.count(), 2u) << two.data();
  // A buffer of the system's, and its result.
  const Result<AlignedBuffer> three = AlignedBuffer::create(100, 64);
  EXPECT_EQ(allocations.count(), 3u) << three->data();
}

}  // namespace
}  // namespace godwit
