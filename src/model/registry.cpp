#include "model/registry.h"

#include <fmt/ranges.h>

#include <array>

#include "gguf/value.h"
#include "model/arch/architectures.h"
#include "model/out_of_scope.h"
#include "program/validate.h"

namespace godwit::model {
namespace {

struct Architecture {
  std::string_view name;  // general.architecture
  void (*build)(const Config&, WeightFinder&, program::ProgramBuilder&);
};

constexpr std::array kArchitectures = {
    Architecture{"gemma", build_gemma},         Architecture{"gemma2", build_gemma2},
    Architecture{"gemma3", build_gemma3},       Architecture{"gpt-oss", build_gpt_oss},
    Architecture{"granite", build_granite},     Architecture{"llama", build_llama},
    Architecture{"mistral3", build_mistral3},   Architecture{"olmo2", build_olmo2},
    Architecture{"phi3", build_phi3},           Architecture{"qwen2", build_qwen2},
    Architecture{"qwen3", build_qwen3},         Architecture{"qwen35", build_qwen35},
    Architecture{"qwen35moe", build_qwen35moe}, Architecture{"qwen3moe", build_qwen3moe},
    Architecture{"qwen3next", build_qwen3next}, Architecture{"smollm3", build_smollm3},
};

// Tensors that may lie in a file without changing what it computes: tables that old converters
// wrote out although they follow from the metadata.
bool follows_from_metadata(std::string_view name) {
  return name.ends_with(".attn_rot_embd.weight") || name.ends_with(".rotary_emb.inv_freq") ||
         name == "rope_freqs.weight";
}

// A tensor that the architecture does not read would be left out of the result: a file with routed
// experts, sinks or another head is better refused than half-run.
Status refuse_foreign_tensors(std::string_view architecture, const WeightFinder& weights) {
  for (const std::string& name : weights.unused()) {
    if (follows_from_metadata(name)) continue;
    return fail("tensor '{}' is no part of '{}' as Godwit runs it: a variant it does not know",
                name, architecture);
  }
  return {};
}

Result<Model> build(const Architecture& architecture, const gguf::File& file,
                    const BuildSettings& settings) {
  Result<Config> config = read_config(file);
  if (!config) return fail(config.error());
  config->n_positions = settings.n_positions != 0 ? settings.n_positions : config->context;
  config->with_mtp = settings.with_mtp;
  program::ProgramBuilder builder;
  WeightFinder weights(file, builder);
  program::Program& program = builder.program();
  program.architecture = std::string(architecture.name);
  program.n_layers = config->n_layers;
  program.dim = config->dim;
  program.n_vocab = weights.rows_of("token_embd.weight");
  program.trained_context = config->context;
  architecture.build(*config, weights, builder);
  if (!weights.status()) return fail(weights.status().error());
  if (Status s = refuse_foreign_tensors(architecture.name, weights); !s) return fail(s.error());
  Model model{.program = std::move(builder).finish(), .weights = weights.take_spans()};
  if (Status s = program::validate(model.program); !s) return fail(s.error());
  return model;
}

Result<Model> find_and_build(const gguf::File& file, const BuildSettings& settings) {
  const Result<std::string_view> name = file.need_string("general.architecture");
  if (!name) return fail(name.error());
  if (Status s = refuse_out_of_scope(file, *name); !s) return fail(s.error());
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == *name) return build(architecture, file, settings);
  }
  return fail("architecture {} is not one that Godwit runs ({})", gguf::in_quotes(*name),
              fmt::join(architecture_names(), ", "));
}

}  // namespace

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

Result<Model> build_model(const gguf::File& file, const BuildSettings& settings) {
  Result<Model> model = find_and_build(file, settings);
  if (!model) return fail(std::move(model).error().with(file.path().string()));
  return model;
}

}  // namespace godwit::model
