// The whole grader on a processor: made-up logits of R, and kernels that are twins of their own,
// right or with a mistake planted.
#include "grader/grade.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "grader/gates.h"
#include "grader/report.h"
#include "testing/temporary_folder.h"

namespace godwit::grader {
namespace {

constexpr uint64_t kPositions = 256;

enum class Fault : uint8_t { kNone, kReadsBeyond, kTouchesCache, kDrifts, kWrongBuffer };

// A kernel with weights and cache of its own.
class FakeKernel final : public Subject {
 public:
  FakeKernel(const GradedModel& model, const Twin& source, uint64_t capacity, Mutant mutant,
             Fault fault)
      : model_(model),
        twin_(make_host_twin(model, capacity)),
        capacity_(capacity),
        mutant_(mutant),
        fault_(fault) {
    std::vector<uint16_t> rows(capacity * model.shape.position_numbers());
    source.read_cache(0, rows);
    twin_->write_cache(0, rows);
  }

  [[nodiscard]] std::string describe() const override { return "fake, executor=fake"; }
  void write_cache(uint64_t begin, std::span<const uint16_t> in) override {
    twin_->write_cache(begin, in);
  }
  void read_cache(uint64_t begin, std::span<uint16_t> out) const override {
    twin_->read_cache(begin, out);
  }
  void step(TokenId token, uint64_t position, std::span<float> logits) override {
    run(token, position, logits, {});
    if (fault_ == Fault::kDrifts) logits[0] += 1e-6f * static_cast<float>(n_steps_++);
    if (fault_ == Fault::kReadsBeyond && position + 1 < capacity_) logits[1] += next_row(position);
    if (fault_ == Fault::kTouchesCache && capacity_ > 3) {
      twin_->write_cache(3, std::vector<uint16_t>(model_.shape.position_numbers(), 0));
    }
  }
  bool partial_step(TokenId token, uint64_t position, size_t n_steps) override {
    const std::string& last = model_.program.main[n_steps - 1].label;
    std::vector<float> logits(model_.shape.n_vocab);
    bool done = false;
    run(token, position, logits,
        [&](std::string_view step, std::string_view buffer, std::span<const double> values) {
          if (done && step != last) return;
          buffers_[std::string(buffer)] = {values.begin(), values.end()};
          done = done || step == last;
        });
    if (fault_ == Fault::kWrongBuffer && last == "blk.1.attend") buffers_["attended"][0] += 1.0;
    return true;
  }
  void read(program::BufferId buffer, std::span<float> out) const override {
    const std::vector<double>& values = buffers_.at(model_.program.buffers[buffer.value].name);
    std::ranges::transform(values, out.begin(), [](double v) { return static_cast<float>(v); });
  }
  void timed_step(TokenId, uint64_t) override {}

 private:
  void run(TokenId token, uint64_t position, std::span<float> logits, const TwinTrace& trace) {
    twin_->step({.token = token, .position = position, .mutant = mutant_}, logits, trace);
  }
  // What lies beyond the length, as a kernel with a wrong bound would pick it up.
  [[nodiscard]] float next_row(uint64_t position) const {
    std::vector<uint16_t> row(model_.shape.position_numbers());
    twin_->read_cache(position + 1, row);
    return bf16_to_f32(row[0]) * 1e-6f;
  }

  const GradedModel& model_;
  std::unique_ptr<Twin> twin_;
  uint64_t capacity_;
  Mutant mutant_;
  Fault fault_;
  uint64_t n_steps_ = 0;
  std::map<std::string, std::vector<double>> buffers_;
};

class FakeKernels final : public SubjectMaker {
 public:
  FakeKernels(Mutant mutant, Fault fault) : mutant_(mutant), fault_(fault) {}
  Result<std::unique_ptr<Subject>> make(const GradedModel& model, Twin& twin,
                                        uint64_t capacity) const override {
    return std::make_unique<FakeKernel>(model, twin, capacity, mutant_, fault_);
  }

 private:
  Mutant mutant_;
  Fault fault_;
};

PlanSettings small_plan() {
  GradedShape shape = *find_graded_shape("tiny");
  shape.n_layers = 4;
  shape.ffn = 320;
  shape.n_vocab = 256;
  return {.shape = shape, .n_positions = kPositions, .n_steps = 2, .seeds = {11, 20}};
}

// R: the twin's logits with errors of the size that bf16 makes.
void write_reference(const PlanSettings& plan, const std::filesystem::path& folder) {
  std::string seeds;
  for (const uint64_t seed : plan.seeds) {
    const GradedModel model = make_random_model(plan.shape, seed, plan.n_positions);
    const auto twin = make_host_twin(model, plan.n_positions + plan.n_steps);
    std::ofstream file(folder / fmt::format("seed_{}.f32", seed), std::ios::binary);
    for (uint64_t i = 0; i < plan.n_steps; ++i) {
      std::vector<float> logits(plan.shape.n_vocab);
      twin->step({.token = graded_token(model, seed, i), .position = plan.n_positions + i}, logits,
                 {});
      for (size_t j = 0; j < logits.size(); ++j) logits[j] *= 1.0f + 0.03f * signed_unit(seed, j);
      file.write(reinterpret_cast<const char*>(logits.data()),
                 static_cast<std::streamsize>(logits.size() * sizeof(float)));
    }
    seeds += fmt::format("{}{{\"seed\": {}, \"z\": 0.0}}", seeds.empty() ? "" : ", ", seed);
  }
  std::ofstream(folder / "reference.json") << "{\"seeds\": [" << seeds << "]}";
}

Verdict grade(Mutant mutant, Fault fault) {
  const testing::TemporaryFolder folder;
  const PlanSettings plan = small_plan();
  write_reference(plan, folder.path());
  const FakeKernels kernels(mutant, fault);
  const Result<Measurements> m = measure({.plan = plan,
                                          .reference = folder.path(),
                                          .place = TwinPlace::kHost,
                                          .kernel = &kernels,
                                          .n_double_steps = 2,
                                          .n_launches = 4,
                                          .needle_stride = 64},
                                         [](std::string_view) {});
  EXPECT_TRUE(m) << m.error().message;
  const Verdict verdict = judge(*m);
  if (mutant == Mutant::kNone && fault == Fault::kNone) {
    EXPECT_TRUE(verdict.passed()) << report_text(*m, verdict);
  }
  return verdict;
}

bool failed(const Verdict& verdict, std::string_view name) {
  const auto gate = std::ranges::find(verdict.gates, name, &Gate::name);
  return gate != verdict.gates.end() && !gate->passed;
}

TEST(Grade, PassesRightKernelAndCatchesEveryMutantOfTheTwin) {
  const Verdict verdict = grade(Mutant::kNone, Fault::kNone);
  EXPECT_EQ(verdict.n_mutants_caught, 8u);
  EXPECT_GT(verdict.e, 0.01);
}

TEST(Grade, FailsKernelWithEachMistake) {
  for (const MutantRow& row : kMutants) {
    EXPECT_FALSE(grade(row.mutant, Fault::kNone).passed()) << row.name;
  }
}

TEST(Grade, FailsKernelByTheTestForIt) {
  EXPECT_TRUE(failed(grade(Mutant::kNone, Fault::kReadsBeyond), "test NaN beyond the length"));
  EXPECT_TRUE(failed(grade(Mutant::kNone, Fault::kTouchesCache), "test other bytes of the cache"));
  EXPECT_TRUE(failed(grade(Mutant::kNone, Fault::kDrifts), "test launches repeat bit for bit"));
  const Verdict verdict = grade(Mutant::kNone, Fault::kWrongBuffer);
  EXPECT_TRUE(failed(verdict, "kernel against D, step by step"));
  EXPECT_TRUE(failed(grade(Mutant::kStaleRow, Fault::kNone), "test KV rows"));
  EXPECT_TRUE(failed(grade(Mutant::kDropSplit, Fault::kNone), "test counting"));
  EXPECT_TRUE(failed(grade(Mutant::kDropSplit, Fault::kNone), "test needle"));
}

TEST(Grade, SaysWhatIsWrongWithReferenceFiles) {
  const testing::TemporaryFolder folder;
  const GradeSettings settings{
      .plan = small_plan(), .reference = folder.path(), .place = TwinPlace::kHost};
  const auto message = [&] {
    const Result<Measurements> m = measure(settings, [](std::string_view) {});
    return m ? std::string() : m.error().message;
  };
  EXPECT_NE(message().find("reference.json: cannot be read"), std::string::npos);
  std::ofstream(folder.path() / "reference.json") << "{\"seeds\": 3}";
  EXPECT_NE(message().find("expected an object with the list 'seeds'"), std::string::npos);
  for (const char* text : {"", "[", "[]", "{\"seeds\": {}}", "{\"torch\": 3}",
                           "{\"seeds\": [{\"seed\": 11, \"z\": NaN}]}",
                           "{\"seeds\": [{\"seed\": 11, \"z\": 1e999}]}"}) {
    std::ofstream(folder.path() / "reference.json") << text;
    EXPECT_NE(message().find("expected an object with the list 'seeds'"), std::string::npos)
        << text;
  }
  for (const char* entry : {"3", "{}", "{\"seed\": 11}", "{\"seed\": -11, \"z\": 0}",
                            "{\"seed\": 1.5, \"z\": 0}", "{\"seed\": \"11\", \"z\": 0}",
                            "{\"seed\": 11, \"z\": null}", "{\"seed\": 11, \"z\": -0.5}"}) {
    std::ofstream(folder.path() / "reference.json") << "{\"seeds\": [" << entry << "]}";
    EXPECT_NE(message().find("expected 'seed' and 'z'"), std::string::npos) << entry;
  }
  std::ofstream(folder.path() / "reference.json") << "{\"seeds\": [{\"seed\": 12, \"z\": 0}]}";
  EXPECT_EQ(message(), "R was not run for seed 11");
  std::ofstream(folder.path() / "reference.json")
      << "{\"torch\": 2, \"device\": null, \"seeds\": [{\"seed\": 11, \"z\": 0}]}";
  std::ofstream(folder.path() / "seed_11.f32") << "short";
  EXPECT_NE(message().find("expected 2048 bytes, found 5"), std::string::npos);
}

TEST(Grade, FailsReferenceWithNan) {
  const testing::TemporaryFolder folder;
  PlanSettings plan = small_plan();
  plan.seeds = {11};
  write_reference(plan, folder.path());
  std::fstream file(folder.path() / "seed_11.f32", std::ios::binary | std::ios::in | std::ios::out);
  const float nan = std::nanf("");
  file.seekp(400);
  file.write(reinterpret_cast<const char*>(&nan), sizeof(nan));
  file.close();
  const Result<Measurements> m =
      measure({.plan = plan, .reference = folder.path(), .place = TwinPlace::kHost},
              [](std::string_view) {});
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_TRUE(failed(judge(*m), "E, R against T"));
}

}  // namespace
}  // namespace godwit::grader
