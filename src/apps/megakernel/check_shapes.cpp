#include "apps/megakernel/check_shapes.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/megakernel/named_shape.h"
#include "grader/gates.h"
#include "grader/shape_check.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

// What is wrong with it, or nothing.
std::string verdict_of(const grader::ShapeOutcome& outcome, const ShapesOptions& options) {
  if (!outcome.failure.empty()) return outcome.failure;
  if (!(outcome.error <= grader::kDoubleTolerance)) {
    return fmt::format("error {:.3g} against double precision, {:.3g} is allowed", outcome.error,
                       grader::kDoubleTolerance);
  }
  if (outcome.description.find(options.require) == std::string::npos) {
    return fmt::format("expected '{}', found '{}'", options.require, outcome.description);
  }
  return {};
}

Result<grader::ShapeOutcome> run_shape(const std::string& name, const ShapesOptions& options) {
  Result<grader::GradedShape> shape = named_shape(name);
  if (!shape) return fail(std::move(shape).error());
  if (options.n_layers != 0) shape->n_layers = options.n_layers;
  if (options.n_vocab != 0) shape->n_vocab = options.n_vocab;
  const auto maker = grader::make_backend_subjects(options.backend);
  return grader::check_shape(
      {.shape = *shape,
       .place = options.on_host ? grader::TwinPlace::kHost : grader::TwinPlace::kDevice,
       .n_positions = options.n_positions,
       .n_steps = options.n_steps},
      *maker);
}

}  // namespace

void add_shapes_options(CLI::App& command, ShapesOptions& options) {
  command.add_option("--shapes", options.shapes, "Model shapes")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--kernel", options.backend, "Backend")->capture_default_str();
  command.add_option("--layers", options.n_layers, "Layers of each; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.add_option("--vocab", options.n_vocab, "Vocabulary; 0: the shape's own")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command.add_option("--positions", options.n_positions, "Cached positions")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--steps", options.n_steps, "Decode steps")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--require", options.require, "Text that each description must contain");
  command.add_flag("--on-host", options.on_host, "Twins on the processor");
  command.add_option("--json-out", options.json, "File for the outcomes as JSON");
}

Status check_shapes(const ShapesOptions& options) {
  json out = json::array();
  std::string wrong;
  for (const std::string& name : options.shapes) {
    const Result<grader::ShapeOutcome> outcome = run_shape(name, options);
    const std::string verdict = outcome ? verdict_of(*outcome, options) : outcome.error().message;
    if (!verdict.empty()) wrong += (wrong.empty() ? "" : "; ") + name + ": " + verdict;
    std::printf("%-14s %s, error %.2e: %s\n", name.c_str(),
                outcome ? outcome->description.c_str() : "-", outcome ? outcome->error : HUGE_VAL,
                verdict.empty() ? "ok" : verdict.c_str());
    std::fflush(stdout);
    out.push_back({{"shape", name},
                   {"passed", verdict.empty()},
                   {"problem", verdict},
                   {"description", outcome ? outcome->description : ""},
                   {"error", outcome && std::isfinite(outcome->error) ? json(outcome->error)
                                                                      : json(nullptr)}});
  }
  if (!options.json.empty()) {
    if (Status s = write_text(options.json, out.dump(1)); !s) return s;
  }
  if (!wrong.empty()) return fail("{}", wrong);
  return {};
}

}  // namespace godwit::apps
