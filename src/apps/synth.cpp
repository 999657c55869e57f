#include "apps/synth.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/progress.h"
#include "apps/synth_arch.h"
#include "apps/synth_model.h"
#include "quant/formats.h"

namespace godwit::apps {
namespace {

// The command line as it came; absent is absent, so that a named shape can fill in.
struct Flags {
  std::string shape;
  std::optional<std::string> arch;
  std::optional<uint32_t> dim, layers, heads, kv_heads, head_dim, rope_dim, ffn, vocab, context;
  std::optional<uint32_t> experts, experts_used, expert_ffn, shared_ffn;
  std::optional<uint32_t> ssm_key_heads, ssm_value_heads, ssm_head_dim;
  std::optional<float> rope_theta;
  std::string type = "Q4_K";
  std::optional<std::string> embedding_type;
  std::vector<std::string> tensor_types;
  uint64_t seed = 0;
  bool untied = false;
  bool rope_freqs = false;
  std::string output;
};

std::string format_names() {
  std::string names;
  for (const quant::Format& format : quant::formats()) {
    names += names.empty() ? "" : ", ";
    names += tensor_type_name(format.type);
  }
  return names;
}

Result<TensorType> parse_type(std::string_view flag, std::string_view name) {
  const TensorGeometry* geometry = find_tensor_geometry(name);
  if (geometry == nullptr || quant::find_format(geometry->type) == nullptr) {
    return fail("{}: expected one of {}, found '{}'", flag, format_names(), name);
  }
  return geometry->type;
}

void parse_sparse_sizes(const Flags& flags, ModelShape& shape) {
  shape.experts.count = flags.experts.value_or(shape.experts.count);
  shape.experts.used = flags.experts_used.value_or(shape.experts.used);
  shape.experts.ffn = flags.expert_ffn.value_or(shape.experts.ffn);
  shape.experts.shared_ffn = flags.shared_ffn.value_or(shape.experts.shared_ffn);
  shape.recurrence.key_heads = flags.ssm_key_heads.value_or(shape.recurrence.key_heads);
  shape.recurrence.value_heads = flags.ssm_value_heads.value_or(shape.recurrence.value_heads);
  shape.recurrence.head_dim = flags.ssm_head_dim.value_or(shape.recurrence.head_dim);
}

Result<ModelShape> parse_shape(const Flags& flags) {
  ModelShape shape{.name = "model", .vocab = 32000, .context = 4096};
  if (!flags.shape.empty()) {
    const ModelShape* named = find_shape(flags.shape);
    if (named == nullptr) {
      return fail("--shape: expected one of {}, found '{}'", shape_names(), flags.shape);
    }
    shape = *named;
  } else if (!flags.dim || !flags.layers || !flags.heads || !flags.ffn) {
    return fail("expected --shape NAME (one of {}), or all of --dim, --layers, --heads and --ffn",
                shape_names());
  }
  shape.arch = flags.arch.value_or(shape.arch);
  shape.dim = flags.dim.value_or(shape.dim);
  shape.n_layers = flags.layers.value_or(shape.n_layers);
  shape.n_heads = flags.heads.value_or(shape.n_heads);
  shape.n_kv_heads =
      flags.kv_heads.value_or(flags.shape.empty() ? shape.n_heads : shape.n_kv_heads);
  shape.rope_dim = flags.rope_dim.value_or(shape.rope_dim);
  shape.ffn = flags.ffn.value_or(shape.ffn);
  parse_sparse_sizes(flags, shape);
  shape.vocab = flags.vocab.value_or(shape.vocab);
  shape.context = flags.context.value_or(shape.context);
  shape.rope_theta = flags.rope_theta.value_or(shape.rope_theta);
  if (flags.head_dim) {
    shape.head_dim = *flags.head_dim;
  } else if (flags.shape.empty() && shape.n_heads > 0) {
    shape.head_dim = shape.dim / shape.n_heads;
  }
  if (flags.untied) shape.output = OutputMatrix::kOwn;
  if (flags.rope_freqs) shape.rope_factors = RopeFactors::kLlama3;
  return shape;
}

Result<SynthOptions> parse_options(const Flags& flags) {
  SynthOptions options;
  options.seed = flags.seed;
  auto shape = parse_shape(flags);
  if (!shape) return fail(std::move(shape).error());
  options.shape = *std::move(shape);
  auto type = parse_type("--type", flags.type);
  if (!type) return fail(std::move(type).error());
  options.matrix_type = *type;
  if (flags.embedding_type) {
    auto embedding = parse_type("--embedding-type", *flags.embedding_type);
    if (!embedding) return fail(std::move(embedding).error());
    options.embedding_type = *embedding;
  }
  for (const std::string& text : flags.tensor_types) {
    auto rule = parse_type_rule(text);
    if (!rule) return fail(std::move(rule).error());
    options.rules.push_back(*std::move(rule));
  }
  return options;
}

Status run_synth(const Flags& flags) {
  const auto options = parse_options(flags);
  if (!options) return fail(Error(options.error()).with("synth"));
  const auto model = plan_synth_model(*options);
  if (!model) return fail(Error(model.error()).with("synth"));
  const uint64_t bytes = model->tensor_bytes();
  Progress progress("synth", bytes);
  auto written =
      write_synth_model(*model, flags.output, [&](uint64_t done) { progress.update(done); });
  if (!written) return fail(std::move(written).error().with("synth"));
  fmt::print(stderr, "wrote {}: {} tensors, {:.1f} MiB of weights\n", flags.output,
             model->tensors.size(), static_cast<double>(bytes) / 0x1p20);
  return {};
}

void add_shape_options(CLI::App& command, Flags& flags) {
  command.add_option("--shape", flags.shape, "a known model: " + shape_names());
  command.add_option("--arch", flags.arch, "one of " + synth_arch_names());
  command.add_option("--dim", flags.dim, "width of the residual stream");
  command.add_option("--layers", flags.layers, "number of layers");
  command.add_option("--heads", flags.heads, "query heads");
  command.add_option("--kv-heads", flags.kv_heads, "key/value heads (as many as query heads)");
  command.add_option("--head-dim", flags.head_dim, "width of a head (dim / heads)");
  command.add_option("--rope-dim", flags.rope_dim, "rotated part of a head (all of it)");
  command.add_option("--ffn", flags.ffn, "width of the feed-forward layer");
  command.add_option("--experts", flags.experts,
                     "experts of a layer (gpt-oss, qwen3moe, qwen3next, ...)");
  command.add_option("--experts-used", flags.experts_used, "experts used per token");
  command.add_option("--expert-ffn", flags.expert_ffn, "width of an expert");
  command.add_option("--shared-ffn", flags.shared_ffn, "width of the shared expert");
  command.add_option("--ssm-key-heads", flags.ssm_key_heads, "key heads of recurrent layers");
  command.add_option("--ssm-value-heads", flags.ssm_value_heads, "value heads of these layers");
  command.add_option("--ssm-head-dim", flags.ssm_head_dim, "width of a head of these layers");
  command.add_option("--vocab", flags.vocab, "tokens in the vocabulary (32000)");
  command.add_option("--context", flags.context, "context length that the file promises (4096)");
  command.add_option("--rope-theta", flags.rope_theta, "base of the rotary frequencies (10000)");
  command.add_flag("--untied", flags.untied, "an output matrix of its own");
  command.add_flag("--rope-freqs", flags.rope_freqs, "add rope_freqs.weight as Llama 3.1 has it");
}

}  // namespace

Result<TypeRule> parse_type_rule(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail("--tensor-type: expected PATTERN=TYPE, found '{}'", text);
  }
  auto type = parse_type("--tensor-type", text.substr(equals + 1));
  if (!type) return fail(std::move(type).error());
  return TypeRule{std::string(text.substr(0, equals)), *type};
}

void add_synth_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("synth", "write a synthetic model of any shape and type");
  const auto flags = std::make_shared<Flags>();
  add_shape_options(*command, *flags);
  command->add_option("--type", flags->type, "type of all matrices: " + format_names())
      ->capture_default_str();
  command->add_option("--embedding-type", flags->embedding_type, "type of token_embd.weight");
  command
      ->add_option("--tensor-type", flags->tensor_types,
                   "PATTERN=TYPE: type of the matrices whose name has PATTERN as whole parts "
                   "between dots; may be repeated, the last match wins")
      ->allow_extra_args(false);
  command->add_option("--seed", flags->seed, "seed of the weights")->capture_default_str();
  command->add_option("-o,--output", flags->output, "the file to write")->required();
  command->footer(
      "Example: godwit synth --shape llama-1b --type q4_k --tensor-type ffn_down=q6_k -o 1b.gguf\n"
      "The same options give the same bytes.");
  command->callback([flags] { finish(run_synth(*flags)); });
}

}  // namespace godwit::apps
