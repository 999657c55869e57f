// Routed experts under every policy of --expert-cache-mib, on synthetic models of the architectures
// that have them: the same bits whatever is kept, clear errors where something cannot be read, and
// an engine that goes on after one.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "apps/synth_model.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/expert_report.h"
#include "engine/generate.h"
#include "engine/planned_backend.h"
#include "engine/session.h"
#include "testing/expert_reads.h"
#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

using engine::Engine;
using engine::EngineSettings;
using engine::Session;
using experts::CacheKind;
using experts::CachePolicy;

constexpr CachePolicy kFull{.kind = CacheKind::kFull};
constexpr CachePolicy kMapped{.kind = CacheKind::kMapped};

CachePolicy budget(uint64_t mib) { return {.kind = CacheKind::kBudget, .budget_mib = mib}; }

std::string name_of(const CachePolicy& policy) {
  if (policy == kFull) return "full";
  return policy == kMapped ? "mmap" : fmt::format("{} MiB", policy.budget_mib);
}

// 4 layers of 16 experts, 4 used, of 192 to 256 KiB each, in sizes that differ between layers and
// types that differ within one.
SynthOptions small_model(const std::string& arch) {
  SynthOptions options;
  options.shape = *find_shape("tiny");
  options.shape.arch = arch;
  options.shape.n_layers = 4;
  options.shape.experts = {.count = 16, .used = 4, .ffn = 256};
  if (arch == "qwen3next" || arch == "qwen35moe") {
    options.shape.experts.shared_ffn = 256;
    options.shape.rope_dim = 32;
    options.shape.recurrence = {.key_heads = 2, .value_heads = 4, .head_dim = 32};
  }
  options.matrix_type = TensorType::kQ8_0;
  options.rules = {{"ffn_down_exps", TensorType::kQ6_K},
                   {"blk.1.ffn_gate_exps", TensorType::kIQ2_XXS},
                   {"blk.1.ffn_up_exps", TensorType::kQ4_K},
                   {"blk.2.ffn_down_exps", TensorType::kF16}};
  options.seed = 3;
  return options;
}

std::vector<TokenId> some_tokens(size_t n, uint64_t seed) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back({static_cast<int32_t>(random_bits(seed, i) % 256)});
  return ids;
}

class ExpertCacheTest : public ::testing::TestWithParam<const char*> {
 protected:
  ExpertCacheTest() {
    const auto model = plan_synth_model(small_model(GetParam()));
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    const Status written = write_synth_model(*model, path_, {});
    EXPECT_TRUE(written) << (written ? "" : written.error().message);
  }

  [[nodiscard]] EngineSettings settings(CachePolicy policy) const {
    EngineSettings settings;
    settings.model = path_;
    settings.n_threads = 2;
    settings.n_context = 256;
    settings.chunk_tokens = 32;
    settings.expert_cache = policy;
    return settings;
  }
  static std::unique_ptr<Engine> load(const EngineSettings& settings) {
    auto engine = Engine::load(settings, {});
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
    return engine ? *std::move(engine) : nullptr;
  }

  // The logits after a prompt of many rows and after each of some tokens, all in one.
  static std::vector<float> run(Session& session, uint64_t seed) {
    std::vector<float> all;
    const auto keep = [&] {
      all.insert(all.end(), session.logits().begin(), session.logits().end());
    };
    const Status prompted = session.set_prompt(some_tokens(70, seed), {});
    EXPECT_TRUE(prompted) << (prompted ? "" : prompted.error().message);
    if (!prompted) return all;
    keep();
    for (const TokenId token : some_tokens(6, seed + 1)) {
      const Status appended = session.append(token);
      EXPECT_TRUE(appended) << (appended ? "" : appended.error().message);
      if (!appended) return all;
      keep();
    }
    return all;
  }
  static std::vector<float> run(Engine& engine, uint64_t seed) {
    Result<Session> session = engine.new_session();
    EXPECT_TRUE(session);
    return run(*session, seed);
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.file("model.gguf");
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(ExpertCacheTest, GivesTheSameBitsUnderEveryPolicy) {
  const auto full = load(settings(kFull));
  const std::vector<float> expected = run(*full, 5);
  for (const CachePolicy& policy : {budget(2), budget(3), budget(6), budget(100), kMapped}) {
    for (const size_t n_threads : {size_t{1}, size_t{2}, size_t{3}}) {
      EngineSettings chosen = settings(policy);
      chosen.n_threads = n_threads;
      const auto engine = load(chosen);
      for (int again = 0; again < 2; ++again) {
        EXPECT_TRUE(same_bits(run(*engine, 5), expected))
            << name_of(policy) << ", " << n_threads << " threads, run " << again;
      }
    }
  }
}

TEST_P(ExpertCacheTest, GivesTheSameTextUnderEveryPolicy) {
  engine::GenerateSettings greedy;
  greedy.sampler.temperature = 0;
  greedy.max_tokens = 24;
  greedy.ignore_end = true;
  std::vector<TokenId> expected;
  for (const CachePolicy& policy : {kFull, budget(2), budget(4), kMapped}) {
    const auto engine = load(settings(policy));
    Result<Session> session = engine->new_session();
    const auto result = engine::generate(*session, some_tokens(50, 2), greedy, {});
    ASSERT_TRUE(result) << result.error().message;
    if (expected.empty()) expected = result->tokens;
    EXPECT_EQ(result->tokens, expected) << name_of(policy);
  }
}

TEST_P(ExpertCacheTest, RefusesABudgetTooSmallForOneTokenAndSaysWhatIsNot) {
  // Room for less than the four experts that a token uses.
  SynthOptions options = small_model(GetParam());
  options.shape.experts.used = 8;
  ASSERT_TRUE(write_synth_model(*plan_synth_model(options), path_, {}));
  const auto refused = Engine::load(settings(budget(1)), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the smallest that does has"), std::string::npos)
      << refused.error().message;
  const std::string& message = refused.error().message;
  const size_t at = message.find("has ", message.find("smallest")) + 4;
  const uint64_t least = std::stoull(message.substr(at));
  EXPECT_GT(least, 1u);
  EXPECT_TRUE(Engine::load(settings(budget(least)), {}));
  EXPECT_FALSE(Engine::load(settings(budget(least - 1)), {}));
}

TEST_P(ExpertCacheTest, CountsHitsAndMisses) {
  const auto engine = load(settings(budget(3)));
  run(*engine, 5);
  const experts::Statistics statistics = engine->backend().expert_statistics();
  EXPECT_EQ(statistics.layers.size(), 8u);
  for (const experts::LayerStatistics& layer : statistics.layers) {
    EXPECT_GT(layer.misses + layer.prefetch_hits, 0u);
    EXPECT_GT(layer.bytes_read, 0u);
  }
  EXPECT_LE(statistics.slot_bytes, 3u << 20);
  EXPECT_TRUE(load(settings(kFull))->backend().expert_statistics().layers.empty());
}

TEST_P(ExpertCacheTest, AReadErrorEndsTheRequestAlone) {
  const std::vector<float> expected = run(*load(settings(kFull)), 5);
  EngineSettings chosen = settings(budget(2));
  std::atomic<int64_t> reads_left{INT64_MAX};
  chosen.expert_reads.read = [&](int file, std::span<std::byte> to, uint64_t offset) -> int64_t {
    if (reads_left.fetch_sub(1) <= 0) return -EIO;
    return testing::plain_read(file, to, offset);
  };
  const auto engine = load(chosen);
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  for (const int64_t n_good : {0, 1, 7, 40, 200}) {
    reads_left = n_good;
    session->reset();
    const Status failed = session->set_prompt(some_tokens(70, 5), {});
    reads_left = INT64_MAX;
    ASSERT_FALSE(failed) << n_good;
    EXPECT_NE(failed.error().message.find("_exps.weight"), std::string::npos);
    EXPECT_NE(failed.error().message.find(path_.string()), std::string::npos);
    EXPECT_NE(failed.error().message.find("Input/output error"), std::string::npos);
    EXPECT_TRUE(same_bits(run(*session, 5), expected)) << "after " << n_good << " reads";
  }
  // In the middle of an answer, and another session beside it.
  ASSERT_TRUE(session->set_prompt(some_tokens(20, 9), {}));
  reads_left = 0;
  Status failed;
  for (const TokenId token : some_tokens(50, 10)) {
    failed = session->append(token);
    if (!failed) break;
  }
  EXPECT_FALSE(failed);
  reads_left = INT64_MAX;
  EXPECT_TRUE(same_bits(run(*engine, 5), expected));
  EXPECT_TRUE(same_bits(run(*session, 5), expected));
}

TEST_P(ExpertCacheTest, ATruncatedFileIsAnErrorThatNamesIt) {
  // What is cut off: the end of the file, where the last layer's experts lie.
  for (const CachePolicy& policy : {budget(2), kMapped}) {
    const std::filesystem::path copy = folder_.file("copy.gguf");
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    const auto file = gguf::File::open(copy);
    ASSERT_TRUE(file);
    const gguf::Tensor* const last = file->find_tensor("blk.3.ffn_down_exps.weight");
    ASSERT_NE(last, nullptr);
    EngineSettings chosen = settings(policy);
    chosen.model = copy;
    const auto engine = load(chosen);
    ASSERT_EQ(::truncate(copy.c_str(), static_cast<off_t>(last->file_offset + 4096)), 0);
    Result<Session> session = engine->new_session();
    ASSERT_TRUE(session);
    const Status failed = session->set_prompt(some_tokens(70, 5), {});
    ASSERT_FALSE(failed) << name_of(policy);
    EXPECT_NE(failed.error().message.find("blk.3.ffn_down_exps.weight"), std::string::npos)
        << failed.error().message;
    EXPECT_NE(failed.error().message.find(copy.string()), std::string::npos);
    // The file is whole again: so is the engine.
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(run(*session, 5).size(), 7 * engine->program().n_vocab) << name_of(policy);
  }
}

TEST_P(ExpertCacheTest, PlansWithWhatThePolicyKeeps) {
  const uint64_t all = load(settings(kFull))->plan().need.expert_bytes;
  const auto in_budget = load(settings(budget(3)));
  EXPECT_LE(in_budget->plan().need.expert_bytes, 3u << 20);
  EXPECT_GT(in_budget->plan().need.expert_bytes, 2u << 20);
  EXPECT_GT(all, 8u << 20);
  EXPECT_EQ(load(settings(kMapped))->plan().need.expert_bytes, 0u);
  EngineSettings unasked = settings(kFull);
  unasked.expert_cache.reset();
  EXPECT_EQ(load(unasked)->settings().expert_cache, kFull);
}

TEST_P(ExpertCacheTest, ShrinksToTheMemoryThereIsWithRoomForReading) {
  const auto engine = load(settings(kFull));
  EngineSettings unasked = settings(kFull);
  unasked.expert_cache.reset();
  unasked.expert_reads.n_read_threads = 16;
  const uint64_t all = engine->plan().total();
  for (uint64_t less = 1; less <= 16; ++less) {
    const uint64_t plannable = all - (less << 18);
    const uint64_t available = plannable + (uint64_t{128} << 20);
    ASSERT_EQ(engine::plannable_bytes(available), plannable);
    const auto planned = engine::plan_backend(
        unasked, {.program = engine->program(), .experts = engine->experts()}, available);
    ASSERT_TRUE(planned) << less << ": " << planned.error().message;
    EXPECT_EQ(planned->expert_cache.kind, CacheKind::kBudget) << less;
    EXPECT_LE(planned->plan.total(), plannable) << less;
  }
}

TEST_P(ExpertCacheTest, ReplaysATrace) {
  // Every token chooses the same four experts, so that they are read once.
  std::ofstream out(folder_.file("trace"));
  out << "godwit-route-trace 1 layers=4 experts=16\n";
  for (int token = 0; token < 2; ++token) {
    for (int layer = 0; layer < 4; ++layer) out << token << ' ' << layer << " 3 5 8 13\n";
  }
  out.close();
  EngineSettings chosen = settings(budget(8));
  chosen.route_trace = folder_.file("trace");
  const auto engine = load(chosen);
  run(*engine, 5);
  const engine::ExpertReport report = engine::expert_report(*engine);
  ASSERT_EQ(report.layers.size(), 4u);
  EXPECT_EQ(report.layers[3].name, "blk.3");
  for (const engine::ExpertReport::Layer& layer : report.layers) {
    EXPECT_EQ(layer.counts.misses + layer.counts.prefetch_hits, 8u) << layer.name;
  }
  std::ofstream(folder_.file("trace")) << "godwit-route-trace 1 layers=3 experts=16\n0 0 1 2 3 4\n";
  const auto refused = Engine::load(chosen, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("3 layers"), std::string::npos);
}

// kB of a line of /proc/self/status.
uint64_t status_kb(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    uint64_t value = 0;
    if (word == name && file >> value) return value;
  }
  return 0;
}

// What a run adds to the memory that was resident before, at its peak.
uint64_t peak_mib_of(const EngineSettings& settings) {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const uint64_t before = status_kb("VmRSS:");
  Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  Result<Session> session = (*engine)->new_session();
  EXPECT_TRUE(session->set_prompt(some_tokens(60, 1), {}));
  for (const TokenId token : some_tokens(20, 2)) EXPECT_TRUE(session->append(token));
  const uint64_t peak = status_kb("VmHWM:");
  return (peak - std::min(peak, before)) >> 10;
}

TEST(ExpertMemory, StaysWithinTheBudget) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  const testing::TemporaryFolder folder;
  SynthOptions options = small_model("qwen3moe");
  options.shape.experts = {.count = 64, .used = 4, .ffn = 512};
  options.rules = {};
  EngineSettings settings;
  settings.model = folder.file("model.gguf");
  settings.n_threads = 2;
  settings.n_context = 128;
  settings.chunk_tokens = 16;
  ASSERT_TRUE(write_synth_model(*plan_synth_model(options), settings.model, {}));
  settings.expert_cache = budget(16);
  const uint64_t in_budget = peak_mib_of(settings);
  settings.expert_cache = kFull;
  const uint64_t full = peak_mib_of(settings);
  // 100 MiB of experts; all else is 12 MiB or less.
  EXPECT_LE(in_budget, 16u + 12u);
  EXPECT_GE(full, 100u);
}

INSTANTIATE_TEST_SUITE_P(, ExpertCacheTest,
                         ::testing::Values("qwen3next", "qwen3moe", "qwen35moe", "gpt-oss"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace godwit::apps
