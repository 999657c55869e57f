#include "grader/grade.h"

#include <algorithm>

#include "grader/gates.h"
#include "grader/kernel_tests.h"
#include "grader/mutant.h"
#include "grader/relative_error.h"
#include "grader/shape_check.h"

namespace godwit::grader {
namespace {

// One seed under way: the model, its twin, and R's logits.
class SeedRun {
 public:
  SeedRun(const GradeSettings& settings, const ReferenceSeed& reference)
      : settings_(settings),
        plan_(settings.plan),
        model_(make_random_model(plan_.shape, reference.seed, plan_.n_positions)),
        capacity_(capacity_of(plan_)) {
    errors_.seed = reference.seed;
    errors_.r_r = reference.z;
  }

  Status start() {
    Result<std::vector<float>> logits = read_reference_logits(settings_.reference, errors_.seed,
                                                              plan_.n_steps * plan_.shape.n_vocab);
    if (!logits) return fail(std::move(logits).error());
    reference_ = std::move(*logits);
    Result<std::unique_ptr<Twin>> twin = make_twin(model_, settings_.place, capacity_);
    if (!twin) return fail(std::move(twin).error());
    twin_ = std::move(*twin);
    return {};
  }

  void run_twin() {
    for (uint64_t i = 0; i < plan_.n_steps; ++i) {
      single_.push_back(twin_logits(i, TwinPrecision::kFloat, Mutant::kNone));
      errors_.t_r.push_back(against_reference(single_.back(), i));
    }
    first_row_ = twin_row(plan_.n_positions);
  }

  // A mutant's first step: how far from R, and whether its appended row is another.
  double run_mutant(Mutant mutant, bool& row_differs) {
    const double error = against_reference(twin_logits(0, TwinPrecision::kFloat, mutant), 0);
    row_differs = row_error(plan_.shape, twin_row(plan_.n_positions), first_row_) > kRowTolerance;
    return error;
  }

  // Before the kernel, so that its cache and the twin's are equal.
  void run_double() {
    for (uint64_t i = 0; i < std::min(settings_.n_double_steps, plan_.n_steps); ++i) {
      double_.push_back(twin_logits(i, TwinPrecision::kDouble, Mutant::kNone));
      errors_.t_d.push_back(relative_error<float, float>(single_[i], double_.back()));
    }
  }

  Status make_kernel() {
    twin_->fill_cache();
    Result<std::unique_ptr<Subject>> made = settings_.kernel->make(model_, *twin_, capacity_);
    if (!made) return fail(std::move(made).error());
    kernel_ = std::move(*made);
    return {};
  }

  void run_kernel() {
    std::vector<float> logits(plan_.shape.n_vocab);
    for (uint64_t i = 0; i < plan_.n_steps; ++i) {
      std::ranges::fill(logits, std::nanf(""));
      kernel_->step(token(i), plan_.n_positions + i, logits);
      errors_.k_r.push_back(against_reference(logits, i));
      if (i < double_.size()) {
        errors_.k_d.push_back(relative_error<float, float>(logits, double_[i]));
      }
    }
  }

  // Of the first seed. The twin holds D's rows, the kernel its own.
  void run_tests(Measurements& m) {
    const KernelBench bench{.model = model_,
                            .twin = *twin_,
                            .kernel = *kernel_,
                            .n_positions = plan_.n_positions,
                            .capacity = capacity_,
                            .token = token(0)};
    m.tests.push_back(row_test(bench, double_.size()));
    m.tests.push_back(untouched_test(bench, plan_.n_steps));
    m.tests.push_back(poison_test(bench));
    m.tests.push_back(repeat_test(bench, settings_.n_launches));
    m.tests.push_back(lengths_test(bench, edge_lengths(plan_.n_positions, capacity_)));
    m.buffers = buffer_errors(bench);
  }

  [[nodiscard]] const SeedErrors& errors() const { return errors_; }
  [[nodiscard]] const Subject* kernel() const { return kernel_.get(); }

 private:
  [[nodiscard]] TokenId token(uint64_t step) const {
    return graded_token(model_, errors_.seed, step);
  }
  std::vector<float> twin_logits(uint64_t step, TwinPrecision precision, Mutant mutant) {
    std::vector<float> logits(plan_.shape.n_vocab);
    twin_->step({.token = token(step),
                 .position = plan_.n_positions + step,
                 .precision = precision,
                 .mutant = mutant},
                logits, {});
    return logits;
  }
  [[nodiscard]] std::vector<uint16_t> twin_row(uint64_t position) const {
    std::vector<uint16_t> row(plan_.shape.position_numbers());
    twin_->read_cache(position, row);
    return row;
  }
  [[nodiscard]] double against_reference(std::span<const float> logits, uint64_t step) const {
    const std::span<const float> all(reference_);
    return relative_error<float, float>(
        logits, all.subspan(step * plan_.shape.n_vocab, plan_.shape.n_vocab));
  }

  const GradeSettings& settings_;
  const PlanSettings& plan_;
  GradedModel model_;
  uint64_t capacity_;
  SeedErrors errors_;
  std::vector<float> reference_;            // [n_steps, n_vocab]
  std::vector<std::vector<float>> single_;  // T's logits
  std::vector<std::vector<float>> double_;  // D's
  std::vector<uint16_t> first_row_;         // that T appended
  std::unique_ptr<Twin> twin_;
  std::unique_ptr<Subject> kernel_;
};

std::vector<uint64_t> counting_lengths(uint64_t n_positions, uint64_t capacity) {
  std::vector<uint64_t> lengths{1, 63, 64, 65, n_positions / 16 + 1};
  for (const uint64_t n : {n_positions - 1, n_positions, n_positions + 1, capacity - 1}) {
    lengths.push_back(n);
  }
  return lengths;
}

// Counting and needle on one maker's subjects.
Result<std::vector<TestOutcome>> closed_form_tests(const GradeSettings& settings,
                                                   const SubjectMaker& maker) {
  const ClosedFormSettings form{.shape = settings.plan.shape, .place = settings.place};
  const uint64_t n = settings.plan.n_positions;
  std::vector<TestOutcome> outcomes;
  Result<TestOutcome> counting =
      counting_test(form, maker, counting_lengths(n, capacity_of(settings.plan)));
  if (!counting) return fail(std::move(counting).error());
  outcomes.push_back(*std::move(counting));
  Result<TestOutcome> needle =
      needle_test(form, maker, n, needle_positions(n, settings.needle_stride));
  if (!needle) return fail(std::move(needle).error());
  outcomes.push_back(*std::move(needle));
  return outcomes;
}

// Names the tests that fail on a mutant which logits alone do not show.
Status name_catchers(const GradeSettings& settings, Mutant mutant, bool row_differs,
                     MutantErrors& errors) {
  const auto add = [&](std::string_view test) {
    errors.caught_by += errors.caught_by.empty() ? "" : ", ";
    errors.caught_by += test;
  };
  if (row_differs) add("KV rows");
  GradeSettings few = settings;
  few.needle_stride = settings.plan.n_positions;  // a mutant needs no fine comb
  const auto maker = make_twin_subjects(TwinPrecision::kFloat, mutant);
  const Result<std::vector<TestOutcome>> tests = closed_form_tests(few, *maker);
  if (!tests) return fail(tests.error());
  for (const TestOutcome& test : *tests) {
    if (!test.passed) add(test.name);
  }
  return {};
}

// Rows that a mutant got wrong on every seed.
struct MutantRows {
  std::vector<bool> differ = std::vector<bool>(kMutants.size(), true);
};

void run_mutants(SeedRun& run, Measurements& m, MutantRows& rows) {
  for (size_t i = 0; i < kMutants.size(); ++i) {
    bool differs = false;
    m.mutants[i].m_r.push_back(run.run_mutant(kMutants[i].mutant, differs));
    rows.differ[i] = rows.differ[i] && differs;
  }
}

Status run_seed(const GradeSettings& settings, SeedRun& run, Measurements& m, MutantRows& rows,
                const GradeProgress& progress) {
  if (Status s = run.start(); !s) return s;
  run.run_twin();
  run_mutants(run, m, rows);
  if (settings.kernel != nullptr) {
    if (Status s = run.make_kernel(); !s) return s;
  }
  run.run_double();
  if (settings.kernel != nullptr) {
    run.run_kernel();
    if (m.seeds.empty()) run.run_tests(m);
    m.subject = run.kernel()->describe();
    if (!run.kernel()->failure().empty())
      return fail("the kernel failed: {}", run.kernel()->failure());
  }
  m.seeds.push_back(run.errors());
  progress(fmt::format("seed {}: E {:.4f}", run.errors().seed,
                       *std::ranges::max_element(run.errors().t_r)));
  return {};
}

// Powers of two below the model's own depth, which the seeds cover.
std::vector<DepthError> depth_errors(const GradeSettings& settings) {
  std::vector<DepthError> errors;
  for (uint32_t depth = 1; depth < settings.plan.shape.n_layers; depth *= 2) {
    GradedShape shape = settings.plan.shape;
    shape.n_layers = depth;
    const Result<ShapeOutcome> outcome = check_shape({.shape = shape,
                                                      .place = settings.place,
                                                      .n_positions = settings.plan.n_positions,
                                                      .n_steps = 1},
                                                     *settings.kernel);
    errors.push_back({.n_layers = depth,
                      .error = outcome ? outcome->error : 0.0,
                      .failure = outcome ? outcome->failure : outcome.error().message});
  }
  return errors;
}

}  // namespace

uint64_t capacity_of(const PlanSettings& plan) {
  return plan.n_positions + std::max<uint64_t>(plan.n_steps, 256);
}

Result<Measurements> measure(const GradeSettings& settings, const GradeProgress& progress) {
  const Result<ReferenceRun> reference = read_reference_run(settings.reference);
  if (!reference) return fail(reference.error());
  Measurements m;
  m.model = settings.plan.shape.name;
  m.n_positions = settings.plan.n_positions;
  m.n_steps = settings.plan.n_steps;
  for (const MutantRow& row : kMutants) {
    m.mutants.push_back({.name = std::string(row.name), .m_r = {}, .caught_by = {}});
  }
  MutantRows rows;
  for (const uint64_t seed : settings.plan.seeds) {
    const auto found = std::ranges::find(reference->seeds, seed, &ReferenceSeed::seed);
    if (found == reference->seeds.end()) return fail("R was not run for seed {}", seed);
    SeedRun run(settings, *found);
    if (Status s = run_seed(settings, run, m, rows, progress); !s) return fail(s.error());
  }
  const double tol = judge(m).tol;
  for (size_t i = 0; i < kMutants.size(); ++i) {
    if (margin_of(m.mutants[i]) > tol) continue;
    const Status s = name_catchers(settings, kMutants[i].mutant, rows.differ[i], m.mutants[i]);
    if (!s) return fail(s.error());
    progress(fmt::format("mutant {}: caught by '{}'", m.mutants[i].name, m.mutants[i].caught_by));
  }
  if (settings.kernel != nullptr) {
    Result<std::vector<TestOutcome>> tests = closed_form_tests(settings, *settings.kernel);
    if (!tests) return fail(std::move(tests).error());
    m.tests.insert(m.tests.end(), tests->begin(), tests->end());
    m.depths = depth_errors(settings);
  }
  return m;
}

}  // namespace godwit::grader
