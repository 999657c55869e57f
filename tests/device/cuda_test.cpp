// The cuda backend on a card: every step within its derived bounds, attention in every layout
// against the oracle, the same bits however rows are grouped and kernels are launched, states in
// the canonical layout, and nothing read beyond the length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "apps/synth_arch.h"
#include "apps/synth_model.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/registry.h"
#include "base/half.h"
#include "base/random.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "os/thread_pool.h"
#include "os/topology.h"
#include "quant/formats.h"
#include "testing/source_dir.h"
#include "testing/steps/step_check.h"
#include "testing/temporary_folder.h"

namespace godwit {
namespace {

using backend::Backend;
using backend::ContextId;
using backend::ContextSettings;
using program::Row;

struct OpenModel {
  testing::TemporaryFolder folder;
  std::optional<gguf::File> file;
  model::Model model;
};

std::unique_ptr<OpenModel> open_model(std::unique_ptr<OpenModel> open,
                                      const std::filesystem::path& path) {
  Result<gguf::File> file = gguf::File::open(path);
  EXPECT_TRUE(file) << file.error().message;
  open->file.emplace(std::move(*file));
  Result<model::Model> model = model::build_model(*open->file);
  EXPECT_TRUE(model) << model.error().message;
  open->model = std::move(*model);
  return open;
}

std::unique_ptr<OpenModel> make_model(const apps::SynthOptions& options) {
  auto open = std::make_unique<OpenModel>();
  const std::filesystem::path path = open->folder.path() / "tiny.gguf";
  const Result<apps::SynthModel> plan = apps::plan_synth_model(options);
  EXPECT_TRUE(plan) << plan.error().message;
  const Status written = apps::write_synth_model(*plan, path, {});
  EXPECT_TRUE(written) << written.error().message;
  return open_model(std::move(open), path);
}

apps::SynthOptions tiny(TensorType type) {
  apps::SynthOptions options;
  options.shape = *apps::find_shape("tiny");
  options.matrix_type = type;
  options.seed = 7;
  return options;
}

std::unique_ptr<Backend> load_cuda(const OpenModel& open, const cuda::CudaSettings& settings) {
  Result<std::unique_ptr<Backend>> backend = cuda::make_cuda_backend(settings);
  EXPECT_TRUE(backend) << backend.error().message;
  const Status loaded = (*backend)->load(open.model.program, open.model.weights, {});
  EXPECT_TRUE(loaded) << loaded.error().message;
  return std::move(*backend);
}

std::unique_ptr<Backend> load_reference(const OpenModel& open) {
  Result<std::unique_ptr<Backend>> backend =
      backend::make_backend("reference", {.n_threads = available_cores()});
  EXPECT_TRUE(backend);
  EXPECT_TRUE((*backend)->load(open.model.program, open.model.weights, {}));
  return std::move(*backend);
}

constexpr cuda::CudaSettings kStepwise = {.executor = cuda::ExecutorChoice::kStepwise};

size_t no_rounding(TensorType) { return 0; }

testing::StepDifference worst_step(const OpenModel& open, size_t n_prompt) {
  const auto oracle = load_reference(open);
  const auto subject = load_cuda(open, kStepwise);
  ThreadPool pool(available_cores());
  const testing::StepContext context{.program = open.model.program,
                                     .weights = open.model.weights,
                                     .activation_block = no_rounding,
                                     .pool = pool};
  testing::StepDifference worst;
  const Status ran = testing::check_steps(context, *oracle, *subject,
                                          {.n_prompt = n_prompt, .n_decode = 2, .seed = 3},
                                          [&](const testing::StepDifference& d) {
                                            if (d.ratio() > worst.ratio()) worst = d;
                                            return true;
                                          });
  EXPECT_TRUE(ran) << ran.error().message;
  return worst;
}

void expect_within(const testing::StepDifference& worst, const std::string& what) {
  EXPECT_LE(worst.ratio(), 1.0) << what << ": " << worst.step << ", " << worst.buffer << "["
                                << worst.index << "] at " << worst.position << ": " << worst.found
                                << " for " << worst.expected << ", bound " << worst.bound;
  EXPECT_GT(worst.ratio(), 0.0) << what << ": is the card the oracle?";
}

// 21 rows go group by group, 64 as one chunk.
constexpr size_t kPrompts[] = {21, 64};

TEST(CudaSteps, LieWithinTheirBoundsForEveryType) {
  for (const quant::Format& format : quant::formats()) {
    const auto open = make_model(tiny(format.type));
    for (const size_t n : kPrompts) {
      expect_within(worst_step(*open, n), std::string(tensor_type_name(format.type)));
    }
  }
}

TEST(CudaSteps, LieWithinTheirBoundsForEveryDenseModel) {
  size_t n_run = 0;
  const auto folder = testing::source_dir() / "tests/fixtures/transformers";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto open = open_model(std::make_unique<OpenModel>(), entry.path());
    for (const size_t n : kPrompts) {
      expect_within(worst_step(*open, n), entry.path().stem().string());
    }
    ++n_run;
  }
  EXPECT_GE(n_run, 15u);
}

TEST(CudaSteps, OfExpertsAreRefusedWithTheReason) {
  const auto open =
      open_model(std::make_unique<OpenModel>(),
                 testing::source_dir() / "tests/fixtures/transformers_moe/qwen3moe.gguf");
  const auto backend = cuda::make_cuda_backend(kStepwise);
  ASSERT_TRUE(backend);
  std::string reason;
  for (const program::Step& step : open->model.program.main) {
    const Status s = (*backend)->supports(step);
    if (!s && reason.empty()) reason = s.error().message;
  }
  EXPECT_EQ(reason, "cuda: no kernel for routed experts");
}

TokenId token_at(uint64_t position, uint64_t n_vocab) {
  return {static_cast<int32_t>(random_bits(11, position) % n_vocab)};
}

// Logits of the positions from `first_wanted` on, run in calls of the sizes given, the last one
// repeated.
std::vector<float> logits_of(Backend& backend, ContextId context, const program::Program& program,
                             backend::PositionRange range, const std::vector<size_t>& calls,
                             uint64_t first_wanted) {
  std::vector<float> all;
  size_t call = 0;
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t n =
        std::min<uint64_t>(calls[std::min(call++, calls.size() - 1)], range.end - at);
    std::vector<Row> rows;
    for (uint64_t i = at; i < at + n; ++i) {
      rows.push_back({.token = token_at(i, program.n_vocab),
                      .position = {static_cast<int32_t>(i)},
                      .wants_logits = i >= first_wanted});
    }
    const Status ran = backend.run(context, rows, {0, program.main.size()});
    EXPECT_TRUE(ran) << ran.error().message;
    const std::span<const float> logits = backend.logits(context);
    if (rows.back().wants_logits) all.insert(all.end(), logits.begin(), logits.end());
    at += n;
  }
  return all;
}

ContextId make_context(Backend& backend, TensorType kv, uint64_t n_positions, size_t max_rows) {
  const Result<ContextId> context = backend.make_context({.n_positions = n_positions,
                                                          .k_type = kv,
                                                          .v_type = kv,
                                                          .max_rows = max_rows,
                                                          .max_logit_rows = max_rows});
  EXPECT_TRUE(context) << context.error().message;
  return *context;
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return a.size() == b.size() ? std::sqrt(difference / norm) : 1.0;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct Heads {
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
};
constexpr Heads kHeads[] = {{4, 2, 64}, {9, 3, 64}, {14, 2, 64}, {4, 4, 128}, {8, 2, 128},
                            {4, 2, 80}, {4, 1, 96}, {2, 1, 256}, {8, 2, 32}};

apps::SynthOptions with_heads(const Heads& heads) {
  apps::SynthOptions options = tiny(TensorType::kF16);
  options.shape.n_heads = heads.n_heads;
  options.shape.n_kv_heads = heads.n_kv_heads;
  options.shape.head_dim = heads.head_dim;
  return options;
}

TEST(CudaAttention, FollowsTheOracleOverSplitsInEveryLayout) {
  for (const Heads& heads : kHeads) {
    const auto open = make_model(with_heads(heads));
    const program::Program& program = open->model.program;
    const auto oracle = load_reference(*open);
    const auto subject = load_cuda(*open, kStepwise);
    const uint64_t n = 530;
    const ContextId a = make_context(*oracle, TensorType::kF16, n, 53);
    const ContextId b = make_context(*subject, TensorType::kF16, n, 53);
    const auto expected = logits_of(*oracle, a, program, {0, n}, {53}, 200);
    const auto found = logits_of(*subject, b, program, {0, n}, {53}, 200);
    EXPECT_LE(relative_error(found, expected), 1e-3)
        << heads.n_heads << " heads, " << heads.n_kv_heads << " of KV, " << heads.head_dim;
  }
}

TEST(CudaRuns, GiveTheSameBitsForEveryGroupingAndEveryWayOfLaunching) {
  for (const TensorType weights : {TensorType::kBF16, TensorType::kF16, TensorType::kQ4_K}) {
    const auto open = make_model(tiny(weights));
    const program::Program& program = open->model.program;
    const uint64_t n = 300;
    std::vector<float> first;
    for (const TensorType kv : {TensorType::kBF16, TensorType::kF16, TensorType::kF32}) {
      first.clear();
      for (const cuda::Overlap overlap : {cuda::Overlap::kProgrammatic, cuda::Overlap::kNone}) {
        for (const cuda::Capture capture : {cuda::Capture::kGraph, cuda::Capture::kNone}) {
          const auto backend = load_cuda(*open, {.executor = cuda::ExecutorChoice::kStepwise,
                                                 .overlap = overlap,
                                                 .capture = capture});
          for (const std::vector<size_t>& calls :
               {std::vector<size_t>{1}, {2, 3, 5, 7, 4, 1}, {30}}) {
            const ContextId context = make_context(*backend, kv, n, 31);
            const auto logits = logits_of(*backend, context, program, {0, n}, calls, 0);
            EXPECT_TRUE(backend->runs_groups_alike(context));
            if (first.empty()) first = logits;
            EXPECT_TRUE(same_bits(logits, first)) << "calls of " << calls.front();
            backend->release_context(context);
          }
        }
      }
    }
  }
}

TEST(CudaRuns, ReadNothingBeyondTheLength) {
  const auto open = make_model(tiny(TensorType::kBF16));
  const program::Program& program = open->model.program;
  const auto backend = load_cuda(*open, kStepwise);
  const uint64_t n = 290;
  for (const TensorType kv : {TensorType::kBF16, TensorType::kF16, TensorType::kF32}) {
    const ContextId clean = make_context(*backend, kv, n, 8);
    const ContextId poisoned = make_context(*backend, kv, n, 8);
    const uint64_t bytes = backend->state_shape(clean).position_bytes;
    // All ones are a NaN in each of the types.
    const std::vector<std::byte> poison(n * bytes, std::byte{0xff});
    backend->import_state(poisoned, {0, n}, {.positions = poison});
    EXPECT_TRUE(same_bits(logits_of(*backend, poisoned, program, {0, n}, {1, 8}, 0),
                          logits_of(*backend, clean, program, {0, n}, {1, 8}, 0)));
  }
}

// The oracle itself keeps doubles.
TEST(CudaStates, AreThoseOfTheCpu) {
  const auto open = make_model(tiny(TensorType::kF16));
  const program::Program& program = open->model.program;
  Result<std::unique_ptr<Backend>> cpu = backend::make_backend("cpu", {.n_threads = 2});
  ASSERT_TRUE(cpu);
  ASSERT_TRUE((*cpu)->load(program, open->model.weights, {}));
  const std::unique_ptr<Backend>& oracle = *cpu;
  const auto subject = load_cuda(*open, kStepwise);
  const uint64_t n = 70;
  const ContextId a = make_context(*oracle, TensorType::kF32, n, 10);
  const ContextId b = make_context(*subject, TensorType::kF32, n, 10);
  logits_of(*oracle, a, program, {0, n}, {10}, n);
  logits_of(*subject, b, program, {0, n}, {10}, n);
  ASSERT_EQ(oracle->state_shape(a).position_bytes, subject->state_shape(b).position_bytes);
  const uint64_t floats = n * subject->state_shape(b).position_bytes / sizeof(float);
  std::vector<float> expected(floats);
  std::vector<float> found(floats);
  oracle->export_state(a, {0, n}, {.positions = std::as_writable_bytes(std::span(expected))});
  subject->export_state(b, {0, n}, {.positions = std::as_writable_bytes(std::span(found))});
  EXPECT_LE(relative_error(found, expected), 1e-4);
}

TEST(CudaStates, GoOnToTheBitWhereTheyAreImported) {
  for (const Heads& heads : {Heads{4, 2, 64}, Heads{4, 2, 80}}) {
    const auto open = make_model(with_heads(heads));
    const program::Program& program = open->model.program;
    const auto backend = load_cuda(*open, kStepwise);
    const uint64_t n = 300;
    const ContextId whole = make_context(*backend, TensorType::kF16, n, 30);
    const auto expected = logits_of(*backend, whole, program, {0, n}, {30}, 270);
    const uint64_t bytes = backend->state_shape(whole).position_bytes;
    std::vector<std::byte> first(100 * bytes);
    std::vector<std::byte> second(170 * bytes);
    backend->export_state(whole, {0, 100}, {.positions = first});
    backend->export_state(whole, {100, 270}, {.positions = second});
    const ContextId joined = make_context(*backend, TensorType::kF16, n, 30);
    backend->import_state(joined, {100, 270}, {.positions = second});
    backend->import_state(joined, {0, 100}, {.positions = first});
    EXPECT_TRUE(same_bits(logits_of(*backend, joined, program, {270, n}, {1}, 270), expected));
  }
}

// Whole chunks go another way than single rows; both lie near the oracle.
TEST(CudaPrefill, OfWholeChunksFollowsTheOracle) {
  for (const TensorType type : {TensorType::kBF16, TensorType::kF16, TensorType::kF32}) {
    const auto open = make_model(tiny(type));
    const program::Program& program = open->model.program;
    const auto oracle = load_reference(*open);
    const auto subject = load_cuda(*open, kStepwise);
    EXPECT_NE(subject->describe().find("prefill=cuBLASLt"), std::string::npos)
        << subject->describe();
    const uint64_t n = 384;
    const ContextId a = make_context(*oracle, TensorType::kF16, n, 128);
    const ContextId b = make_context(*subject, TensorType::kF16, n, 128);
    const auto expected = logits_of(*oracle, a, program, {0, n}, {128}, 0);
    const auto found = logits_of(*subject, b, program, {0, n}, {128}, 0);
    EXPECT_LE(relative_error(found, expected), 1e-3) << tensor_type_name(type);
    const ContextId again = make_context(*subject, TensorType::kF16, n, 128);
    EXPECT_TRUE(same_bits(logits_of(*subject, again, program, {0, n}, {128}, 0), found));
  }
}

}  // namespace
}  // namespace godwit
