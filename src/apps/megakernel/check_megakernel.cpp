#include "apps/megakernel/check_megakernel.h"

#include <cstdio>
#include <filesystem>

#include "apps/megakernel/named_shape.h"
#include "grader/grade.h"
#include "grader/report.h"

namespace godwit::apps {
namespace {

Result<grader::PlanSettings> plan_of(const MegakernelOptions& options) {
  const Result<grader::GradedShape> shape = named_shape(options.shape);
  if (!shape) return fail(shape.error());
  return grader::PlanSettings{.shape = *shape,
                              .n_positions = options.n_positions,
                              .n_steps = options.n_steps,
                              .seeds = options.seeds};
}

Status write_plan(const MegakernelOptions& options, const grader::PlanSettings& plan) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  const std::filesystem::path path = std::filesystem::path(options.folder) / "plan.json";
  if (Status s = grader::write_plan(plan, path); !s) return s;
  std::printf("wrote %s; next: python3 tools/megakernel_reference.py %s\n", path.c_str(),
              options.folder.c_str());
  return {};
}

}  // namespace

void add_megakernel_options(CLI::App& command, MegakernelOptions& options) {
  command
      .add_option("--reference", options.folder, "Folder of plan.json and the reference's logits")
      ->required();
  command.add_flag("--plan", options.write_plan, "Write the plan into it, and leave");
  command.add_option("--kernel", options.backend, "Backend to grade; none: the references alone")
      ->capture_default_str();
  command.add_option("--shape", options.shape, "Model shape")->capture_default_str();
  command.add_option("--positions", options.n_positions, "Cached positions")
      ->check(CLI::Range(256, 1 << 20))
      ->capture_default_str();
  command.add_option("--steps", options.n_steps, "Decode steps")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--seeds", options.seeds, "Seeds of weights, cache and tokens")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--double-steps", options.n_double_steps, "Steps in double precision, a seed")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--launches", options.n_launches, "Launches that must repeat bit for bit")
      ->check(CLI::Range(2, 1000000))
      ->capture_default_str();
  command.add_option("--needle-stride", options.needle_stride, "Positions between needles")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_flag("--on-host", options.on_host, "Twins on the processor: for the shape 'tiny'");
  command.add_option("--require", options.require,
                     "Text that the kernel's description must contain, as in executor=persistent");
  command.add_option("--json-out", options.json, "File for the measurements as JSON");
}

Status check_megakernel(const MegakernelOptions& options) {
  const Result<grader::PlanSettings> plan = plan_of(options);
  if (!plan) return fail(plan.error());
  if (options.write_plan) return write_plan(options, *plan);
  const auto kernel = grader::make_backend_subjects(options.backend);
  const grader::GradeSettings settings{
      .plan = *plan,
      .reference = options.folder,
      .place = options.on_host ? grader::TwinPlace::kHost : grader::TwinPlace::kDevice,
      .kernel = options.backend == "none" ? nullptr : kernel.get(),
      .n_double_steps = options.n_double_steps,
      .n_launches = options.n_launches,
      .needle_stride = options.needle_stride};
  const Result<grader::Measurements> measured =
      grader::measure(settings, [](std::string_view line) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
      });
  if (!measured) return fail(measured.error());
  const grader::Verdict verdict = grader::judge(*measured);
  std::printf("%s", grader::report_text(*measured, verdict).c_str());
  if (!options.json.empty()) {
    const Status s = write_text(options.json, grader::report_json(*measured, verdict));
    if (!s) return s;
  }
  if (measured->subject.find(options.require) == std::string::npos) {
    return fail("the kernel says '{}', expected '{}' in it", measured->subject, options.require);
  }
  if (!verdict.passed()) return fail("a gate failed; the table says which");
  return {};
}

}  // namespace godwit::apps
