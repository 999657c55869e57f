#include "testing/steps/step_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "program/access.h"

namespace godwit::testing {
namespace {

using backend::Backend;
using backend::ContextId;
using program::Row;

class Checker {
 public:
  Checker(const StepContext& context, Backend& oracle, Backend& subject,
          const StepCheckSettings& settings,
          const std::function<bool(const StepDifference&)>& on_step)
      : context_(context),
        oracle_(oracle),
        subject_(subject),
        settings_(settings),
        on_step_(on_step) {}

  Status run() {
    const backend::ContextSettings wanted{.n_positions = settings_.n_prompt + settings_.n_decode,
                                          .k_type = TensorType::kF32,
                                          .v_type = TensorType::kF32,
                                          .max_rows = settings_.n_prompt,
                                          .max_logit_rows = settings_.n_prompt};
    const Result<ContextId> a = oracle_.make_context(wanted);
    if (!a) return fail(a.error());
    const Result<ContextId> b = subject_.make_context(wanted);
    if (!b) return fail(b.error());
    oracle_context_ = *a;
    subject_context_ = *b;
    Result<bool> go_on = run_call(0, settings_.n_prompt);
    for (size_t i = 0; i < settings_.n_decode && go_on && *go_on; ++i) {
      go_on = run_call(settings_.n_prompt + i, 1);
    }
    oracle_.release_context(*a);
    subject_.release_context(*b);
    if (!go_on) return fail(go_on.error());
    return {};
  }

 private:
  // All steps of one call; false when the listener has heard enough.
  Result<bool> run_call(size_t first, size_t n) {
    std::vector<Row> rows;
    for (size_t i = first; i < first + n; ++i) {
      const uint64_t id = random_bits(settings_.seed, i) % context_.program.n_vocab;
      rows.push_back({.token = {static_cast<int32_t>(id)},
                      .position = {static_cast<int32_t>(i)},
                      .wants_logits = true});
    }
    for (const program::StepList list : {program::StepList::kMain, program::StepList::kMtp}) {
      for (size_t i = 0; i < context_.program.steps(list).size(); ++i) {
        const Result<StepDifference> worst = run_step({i, i + 1, list}, rows);
        if (!worst) return fail(worst.error());
        if (!on_step_(*worst)) return false;
      }
    }
    return true;
  }

  Result<StepDifference> run_step(program::StepRange one, std::span<const Row> rows) {
    const program::Step& step = context_.program.steps(one.list)[one.begin];
    const program::Access access = program::access_of(step.operation);
    std::vector<std::vector<float>> inputs;
    for (const program::Access::Use& use : access.reads) {
      std::vector<float>& values = inputs.emplace_back(rows.size() * use.width);
      oracle_.read(oracle_context_, use.buffer, values);
      oracle_.write(oracle_context_, use.buffer, values);  // rounded to f32, as the subject sees it
      subject_.write(subject_context_, use.buffer, values);
    }
    if (const auto* attend = std::get_if<program::Attend>(&step.operation)) {
      note_values(*attend, inputs[2]);
    }
    for (const Status& ran :
         {oracle_.run(oracle_context_, rows, one), subject_.run(subject_context_, rows, one)}) {
      if (!ran) return fail(Error(ran.error()).with(step.label));
    }

    StepDifference worst{.step = step.label, .buffer = "", .position = rows.front().position.value};
    for (const program::Access::Use& use : access.writes) {
      compare(step, use, rows, inputs, access, worst);
    }
    return worst;
  }

  // max|v| of each KV so far: attention's result lies within it.
  void note_values(const program::Attend& attend, std::span<const float> v) {
    values_max_.resize(context_.program.kvs.size(), 0.0);
    double& highest = values_max_[attend.kv.value];
    for (const float value : v) highest = std::max(highest, std::abs(static_cast<double>(value)));
    current_values_max_ = highest;
  }

  void compare(const program::Step& step, const program::Access::Use& use,
               std::span<const Row> rows, const std::vector<std::vector<float>>& inputs,
               const program::Access& access, StepDifference& worst) {
    std::vector<float> expected(rows.size() * use.width);
    std::vector<float> found(expected.size());
    oracle_.read(oracle_context_, use.buffer, expected);
    subject_.read(subject_context_, use.buffer, found);
    for (size_t t = 0; t < rows.size(); ++t) {
      std::vector<RowValues> row_inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto begin =
            inputs[i].begin() + static_cast<std::ptrdiff_t>(t * access.reads[i].width);
        row_inputs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(access.reads[i].width));
      }
      const std::vector<double> bounds = step_bound(context_, step.operation, use.buffer,
                                                    {.token = rows[t].token,
                                                     .inputs = row_inputs,
                                                     .attended_values_max = current_values_max_});
      for (size_t i = 0; i < use.width; ++i) {
        const StepDifference difference{
            .step = step.label,
            .buffer = context_.program.buffers[use.buffer.value].name,
            .position = rows[t].position.value,
            .index = i,
            .expected = static_cast<double>(expected[t * use.width + i]),
            .found = static_cast<double>(found[t * use.width + i]),
            .bound = bounds[i]};
        if (worst.buffer.empty() || difference.ratio() > worst.ratio()) worst = difference;
      }
    }
  }

  const StepContext& context_;
  Backend& oracle_;
  Backend& subject_;
  const StepCheckSettings& settings_;
  const std::function<bool(const StepDifference&)>& on_step_;
  ContextId oracle_context_;
  ContextId subject_context_;
  std::vector<double> values_max_;
  double current_values_max_ = 0;
};

}  // namespace

double StepDifference::ratio() const {
  const double error = std::abs(found - expected);
  if (error == 0.0) return 0.0;
  const double ratio = error / bound;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

Status check_steps(const StepContext& context, Backend& oracle, Backend& subject,
                   const StepCheckSettings& settings,
                   const std::function<bool(const StepDifference&)>& on_step) {
  return Checker(context, oracle, subject, settings, on_step).run();
}

}  // namespace godwit::testing
