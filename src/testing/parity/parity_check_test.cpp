// The checks of parity find each mistake that is planted, and nothing wrong with the backends: a
// dense model, and one with recurrent layers and experts.
#include "testing/parity/parity_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "backend/registry.h"
#include "base/random.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "testing/models/tiny_hybrid.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit::testing {
namespace {

using backend::Backend;
using backend::ContextId;

// What a backend does wrong.
enum class Mistake : uint8_t {
  kNone,
  kGroupedLogits,  // of calls of many rows, one bit
  kLosesImported,  // the second half of what is put back
  kForgetsFixed,   // recurrent states of what is put back
  kHalfHistory,    // the older half of a history is zero
  kShiftedKeys,    // every position has its neighbour's
  kLosesOneBlock,  // 64 positions of 1,024
  kIsNoNumber,
};

// Another backend with a mistake.
class WrongBackend : public Backend {
 public:
  WrongBackend(Backend& right, Mistake mistake) : right_(right), mistake_(mistake) {}

  std::string_view name() const override { return "wrong"; }
  Status supports(const program::Step& step) const override { return right_.supports(step); }
  Result<backend::MemoryNeed> memory_need(const program::Program& program,
                                          const backend::ContextSettings& s) const override {
    return right_.memory_need(program, s);
  }
  Status load(const program::Program&, std::span<const std::span<const std::byte>>,
              const backend::Progress&) override {
    return {};
  }
  Result<ContextId> make_context(const backend::ContextSettings& settings) override {
    return right_.make_context(settings);
  }
  void release_context(ContextId context) override { right_.release_context(context); }
  Status run(ContextId context, std::span<const program::Row> rows,
             program::StepRange steps) override {
    Status ran = right_.run(context, rows, steps);
    const std::span<const float> found = right_.logits(context);
    std::vector<float>& logits = logits_[context.value];
    logits.assign(found.begin(), found.end());
    if (logits.empty()) return ran;
    if (mistake_ == Mistake::kGroupedLogits && rows.size() > 1) {
      logits[3] = std::nextafter(logits[3], 1e30f);
    }
    if (mistake_ == Mistake::kIsNoNumber) logits[5] = std::nanf("");
    return ran;
  }
  void read(ContextId context, program::BufferId buffer, std::span<float> out) const override {
    right_.read(context, buffer, out);
  }
  void write(ContextId context, program::BufferId buffer, std::span<const float> in) override {
    right_.write(context, buffer, in);
  }
  std::span<const float> logits(ContextId context) const override {
    return logits_.at(context.value);
  }
  backend::StateShape state_shape(ContextId context) const override {
    return right_.state_shape(context);
  }
  void export_state(ContextId context, backend::PositionRange range,
                    backend::StateTarget to) const override {
    right_.export_state(context, range, to);
  }
  void import_state(ContextId context, backend::PositionRange range,
                    backend::StateSource from) override {
    std::vector<std::byte> positions(from.positions.begin(), from.positions.end());
    std::vector<std::byte> fixed(from.fixed.begin(), from.fixed.end());
    const size_t one = right_.state_shape(context).position_bytes;
    for (uint64_t i = range.begin; i < range.end && !positions.empty(); ++i) {
      const std::span<std::byte> position =
          std::span(positions).subspan((i - range.begin) * one, one);
      const bool lost = (mistake_ == Mistake::kLosesImported && i >= range.end / 2) ||
                        (mistake_ == Mistake::kHalfHistory && i < 512) ||
                        (mistake_ == Mistake::kLosesOneBlock && i >= 512 && i < 576);
      if (lost) std::ranges::fill(position, std::byte{0});
    }
    // Keys come first in a position; of one layer they are half of it.
    for (size_t at = 0; mistake_ == Mistake::kShiftedKeys && at + one < positions.size();
         at += one) {
      std::copy_n(&positions[at + one], one / 2, &positions[at]);
    }
    if (mistake_ == Mistake::kForgetsFixed) std::ranges::fill(fixed, std::byte{0});
    right_.import_state(context, range, {.positions = positions, .fixed = fixed});
  }
  std::string describe() const override { return "wrong"; }

 private:
  Backend& right_;
  Mistake mistake_;
  std::map<uint32_t, std::vector<float>> logits_;  // of each context
};

class ParityCheck : public ::testing::Test {
 protected:
  void load(bool hybrid) {
    const std::filesystem::path path = folder_.file("model.gguf");
    const Status written =
        hybrid ? write_tiny_hybrid(path, {}) : write_tiny_llama(path, {.type = TensorType::kQ8_0});
    ASSERT_TRUE(written) << written.error().message;
    file_ = gguf::File::open(path);
    ASSERT_TRUE(file_);
    model_ = model::build_model(*file_);
    ASSERT_TRUE(model_);
    for (auto& [name, backend] : {std::pair{"cpu", &cpu_}, std::pair{"reference", &oracle_}}) {
      auto made = backend::make_backend(name, {.n_threads = 2});
      ASSERT_TRUE(made);
      *backend = *std::move(made);
      ASSERT_TRUE((*backend)->load(model_->program, model_->weights, {}));
    }
    for (size_t i = 0; i < 96; ++i) {
      text_.push_back({static_cast<int32_t>(random_bits(3, i) % 256)});
    }
  }

  [[nodiscard]] ParitySubject subject(Backend& backend) const {
    return {.program = model_->program, .backend = backend, .text = text_};
  }
  // Whether every finding of a check holds, with the mistake planted.
  template <class Check>
  bool holds(Mistake mistake, const Check& check) {
    WrongBackend wrong(*cpu_, mistake);
    bool all = true;
    size_t n = 0;
    const Status ran = check(subject(wrong), [&](const Finding& f) {
      all = all && f.holds();
      EXPECT_GT(f.n_cases, 0u);
      if (mistake == Mistake::kNone) {
        EXPECT_TRUE(f.holds()) << f.subject << ": " << f.error << " at " << f.at;
      }
      ++n;
    });
    EXPECT_TRUE(ran) << ran.error().message;
    EXPECT_GT(n, 0u);
    return all;
  }
  bool holds_at_depth(Mistake mistake) {
    return holds(mistake, [&](const ParitySubject& s, const FindingSink& sink) {
      return check_depth(s, *oracle_, {.n_positions = 1024, .n_steps = 4}, sink);
    });
  }

  TemporaryFolder folder_;
  Result<gguf::File> file_ = fail("not opened");
  Result<model::Model> model_ = fail("not built");
  std::unique_ptr<Backend> cpu_;
  std::unique_ptr<Backend> oracle_;
  std::vector<TokenId> text_;
};

TEST_F(ParityCheck, OfADenseModelFindsWhatIsPlanted) {
  load(false);
  EXPECT_TRUE(holds(Mistake::kNone, check_groups));
  EXPECT_FALSE(holds(Mistake::kGroupedLogits, check_groups));
  EXPECT_TRUE(holds(Mistake::kNone, check_restored));
  EXPECT_FALSE(holds(Mistake::kLosesImported, check_restored));
  EXPECT_TRUE(holds(Mistake::kNone, check_kv_types));
  EXPECT_FALSE(holds(Mistake::kIsNoNumber, check_kv_types));
}

TEST_F(ParityCheck, OfAHybridModelFindsWhatIsPlanted) {
  load(true);
  EXPECT_TRUE(holds(Mistake::kNone, check_groups));
  EXPECT_FALSE(holds(Mistake::kGroupedLogits, check_groups));
  EXPECT_TRUE(holds(Mistake::kNone, check_restored));
  EXPECT_FALSE(holds(Mistake::kForgetsFixed, check_restored));
  EXPECT_TRUE(holds(Mistake::kNone, check_kv_types));
}

TEST_F(ParityCheck, AtDepthFindsALostHistory) {
  load(false);
  EXPECT_TRUE(holds_at_depth(Mistake::kNone));
  for (const Mistake mistake : {Mistake::kHalfHistory, Mistake::kShiftedKeys,
                                Mistake::kLosesOneBlock, Mistake::kIsNoNumber}) {
    EXPECT_FALSE(holds_at_depth(mistake)) << static_cast<int>(mistake);
  }
}

TEST_F(ParityCheck, AtDepthRefusesRecurrentStates) {
  load(true);
  const Status ran = check_depth(subject(*cpu_), *oracle_, {.n_positions = 64}, [](const auto&) {});
  EXPECT_FALSE(ran);
}

TEST(Divergence, IsThatOfTheDistributions) {
  const std::vector<float> even = {1.0f, 1.0f};
  const std::vector<float> skewed = {std::log(3.0f), 0.0f};
  EXPECT_NEAR(divergence(even, skewed), 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25),
              1e-7);
  EXPECT_EQ(divergence(skewed, skewed), 0.0);
  const std::vector<float> offset = {101.0f, 101.0f};
  EXPECT_NEAR(divergence(even, offset), 0.0, 1e-12);
}

}  // namespace
}  // namespace godwit::testing
