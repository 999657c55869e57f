#include "model/registry.h"

#include <fmt/ranges.h>

#include <array>

#include "model/arch/architectures.h"
#include "program/validate.h"

namespace godwit::model {
namespace {

struct Architecture {
  std::string_view name;  // general.architecture
  void (*build)(const Config&, WeightFinder&, program::ProgramBuilder&);
};

constexpr std::array kArchitectures = {
    Architecture{"llama", build_llama},
    Architecture{"qwen2", build_qwen2},
};

// Tensors that would change the result if they were ignored. A llama file with routed experts is
// a Mixtral; better refused than half-run.
Status refuse_foreign_tensors(const gguf::File& file) {
  for (const gguf::Tensor& tensor : file.tensors()) {
    for (const std::string_view part : {"_exps.", "ffn_gate_inp", "attn_q_norm", "attn_sinks"}) {
      if (tensor.name.find(part) == std::string::npos) continue;
      return fail("tensor '{}' belongs to a variant of this architecture that Godwit does not run",
                  tensor.name);
    }
  }
  return {};
}

Result<Model> build(const Architecture& architecture, const gguf::File& file) {
  if (Status s = refuse_foreign_tensors(file); !s) return fail(s.error());
  const Result<Config> config = read_config(file);
  if (!config) return fail(config.error());
  program::ProgramBuilder builder;
  WeightFinder weights(file, builder);
  architecture.build(*config, weights, builder);
  if (!weights.status()) return fail(weights.status().error());
  builder.program().architecture = std::string(architecture.name);
  Model model{.program = std::move(builder).finish(), .weights = weights.take_spans()};
  if (Status s = program::validate(model.program); !s) return fail(s.error());
  return model;
}

}  // namespace

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

Result<Model> build_model(const gguf::File& file) {
  const Result<std::string_view> name = file.need_string("general.architecture");
  if (!name) return fail(Error(name.error()).with(file.path().string()));
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name != *name) continue;
    Result<Model> model = build(architecture, file);
    if (!model) return fail(std::move(model).error().with(file.path().string()));
    return model;
  }
  return fail("{}: architecture '{}' is not one that Godwit runs ({})", file.path().string(), *name,
              fmt::join(architecture_names(), ", "));
}

}  // namespace godwit::model
