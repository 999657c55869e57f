#include "apps/check/parity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/check/checkout_text.h"
#include "apps/check/table.h"
#include "apps/command.h"
#include "apps/model_options.h"
#include "apps/synth_model.h"
#include "backend/registry.h"
#include "engine/memory_plan.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "os/memory.h"
#include "os/topology.h"
#include "testing/parity/parity_check.h"
#include "tokenizer/tokenizer.h"

namespace godwit::apps {
namespace {

// History of the tiny model, deeper than real ones are quickly computed at by the reference.
constexpr uint64_t kTinyDepth = 131072;
constexpr size_t kLeastTokens = 64;
// As many as an engine addresses; together with any number of steps that fits a position.
constexpr uint64_t kMaxDepth = uint64_t{1} << 24;

struct ParityOptions {
  ModelOptions model;
  size_t n_tokens = 256;
  std::vector<uint64_t> depths{1024, 8192, 32768};
  size_t n_steps = 8;
  uint64_t seed = 1;
  std::string text_file;
  bool no_tiny = false;
  bool as_json = false;
};

// A model with the backend that is checked and the oracle, both loaded.
struct Loaded {
  std::unique_ptr<gguf::File> file;
  std::unique_ptr<model::Model> model;  // points into the file
  std::unique_ptr<backend::Backend> subject;
  std::unique_ptr<backend::Backend> oracle;

  [[nodiscard]] uint64_t fixed_states() const { return model->program.states.size(); }
};

Result<Loaded> load(const std::filesystem::path& path, const std::string& backend,
                    const backend::BackendSettings& settings) {
  Loaded loaded;
  Result<gguf::File> file = gguf::File::open(path);
  if (!file) return fail(std::move(file).error());
  loaded.file = std::make_unique<gguf::File>(*std::move(file));
  Result<model::Model> model = model::build_model(*loaded.file);
  if (!model) return fail(std::move(model).error());
  loaded.model = std::make_unique<model::Model>(*std::move(model));
  for (const auto& [name, place] :
       {std::pair{backend, &loaded.subject}, std::pair{std::string("reference"), &loaded.oracle}}) {
    auto made = backend::make_backend(name, settings);
    if (!made) return fail(std::move(made).error());
    *place = *std::move(made);
    if (Status s = (*place)->load(loaded.model->program, loaded.model->weights, {}); !s) {
      return fail(std::move(s).error());
    }
  }
  return loaded;
}

// The first n tokens of the text.
Result<std::vector<TokenId>> text_tokens(const gguf::File& file, const std::string& text,
                                         size_t n) {
  const Result<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::load(file);
  if (!tokenizer) return fail(tokenizer.error());
  std::vector<TokenId> tokens =
      tokenizer->encode(std::string_view(text).substr(0, n * 16), tokenizer::Specials::kText,
                        tokenizer::AddBos::kAsModelSays);
  if (tokens.size() < std::min(n, kLeastTokens)) {
    return fail("check parity: a text of {} tokens; expected at least {}", tokens.size(),
                kLeastTokens);
  }
  tokens.resize(std::min(tokens.size(), n));
  return tokens;
}

class ParityRun {
 public:
  ParityRun(const ParityOptions& options, std::string text)
      : options_(options),
        text_(std::move(text)),
        table_({.name = "parity", .as_json = options.as_json}) {}

  [[nodiscard]] Status run(const std::filesystem::path& path,
                           const backend::BackendSettings& settings) {
    say("loading the model twice");
    const Result<Loaded> loaded = load(path, options_.model.backend, settings);
    if (!loaded) return fail(loaded.error());
    const auto tokens = text_tokens(*loaded->file, text_, options_.n_tokens);
    if (!tokens) return fail(tokens.error());
    const auto k_type = parse_kv_type(options_.model.kv_type.empty() ? options_.model.k_type
                                                                     : options_.model.kv_type);
    const auto v_type = parse_kv_type(options_.model.kv_type.empty() ? options_.model.v_type
                                                                     : options_.model.kv_type);
    if (!k_type) return fail(k_type.error());
    if (!v_type) return fail(v_type.error());
    const testing::ParitySubject subject{.program = loaded->model->program,
                                         .backend = *loaded->subject,
                                         .text = *tokens,
                                         .k_type = *k_type,
                                         .v_type = *v_type};
    const testing::FindingSink sink = sink_for("");
    say("groups of rows");
    if (Status s = testing::check_groups(subject, sink); !s) return s;
    say("histories put back");
    if (Status s = testing::check_restored(subject, sink); !s) return s;
    say("types of KV");
    double type_divergence = 0;
    const std::string own_type = fmt::format("KV {} from f32", kv_type_name(*k_type));
    const Status told = testing::check_kv_types(subject, [&](const testing::Finding& f) {
      if (f.subject == own_type && f.property == testing::kMostDivergence) {
        type_divergence = f.error;
      }
      sink(f);
    });
    if (!told) return told;
    if (loaded->fixed_states() > 0) {
      say("a history of recurrent states cannot be made up: no steps at depth");
      return {};
    }
    for (const uint64_t depth : options_.depths) {
      if (depth == 0) continue;
      const Status s =
          check_depth(subject, *loaded->oracle,
                      {.n_positions = depth, .type_divergence = type_divergence}, sink);
      if (!s) return s;
    }
    return {};
  }

  // The same depth check on a model so small that the reference keeps up.
  [[nodiscard]] Status run_tiny(const backend::BackendSettings& settings) {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / fmt::format("godwit-parity-{}.gguf", getpid());
    const Status ran = run_tiny(path, settings);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return ran;
  }

  [[nodiscard]] Status finish() { return table_.finish(); }

 private:
  [[nodiscard]] Status run_tiny(const std::filesystem::path& path,
                                const backend::BackendSettings& settings) {
    SynthOptions options;
    options.shape = *find_shape("tiny");
    options.shape.context = static_cast<uint32_t>(kTinyDepth + options_.n_steps);
    const Result<SynthModel> synth = plan_synth_model(options);
    if (!synth) return fail(synth.error());
    if (Status s = write_synth_model(*synth, path, {}); !s) return s;
    const Result<Loaded> loaded = load(path, options_.model.backend, settings);
    if (!loaded) return fail(loaded.error());
    const auto tokens = text_tokens(*loaded->file, text_, kLeastTokens);
    if (!tokens) return fail(tokens.error());
    return check_depth(
        {.program = loaded->model->program, .backend = *loaded->subject, .text = *tokens},
        *loaded->oracle, {.n_positions = kTinyDepth}, sink_for("tiny model, "));
  }

  [[nodiscard]] Status check_depth(const testing::ParitySubject& subject, backend::Backend& oracle,
                                   testing::DepthCheck check,
                                   const testing::FindingSink& sink) const {
    check.n_steps = options_.n_steps;
    check.seed = options_.seed;
    say(fmt::format("{} steps at {} positions", check.n_steps, check.n_positions).c_str());
    return testing::check_depth(subject, oracle, check, sink);
  }

  [[nodiscard]] testing::FindingSink sink_for(const std::string& prefix) {
    return [this, prefix](const testing::Finding& f) {
      table_.add({.name = prefix + f.subject,
                  .check = f.property,
                  .n_cases = f.n_cases,
                  .error = f.error,
                  .bound = f.bound,
                  .holds = f.holds(),
                  .at = f.at});
    };
  }

  static void say(const char* what) { std::fprintf(stderr, "check parity: %s\n", what); }

  const ParityOptions& options_;
  std::string text_;
  CheckTable table_;
};

Status check_parity(const ParityOptions& options) {
  const Result<engine::EngineSettings> settings = engine_settings(options.model);
  if (!settings) return fail(settings.error());
  Result<std::string> text =
      options.text_file.empty() ? checkout_text() : read_text_file(options.text_file);
  if (!text) return fail(std::move(text).error());
  const backend::BackendSettings backend{
      .n_threads = settings->n_threads != 0 ? settings->n_threads : available_cores(),
      .activation_bits = settings->activation_bits,
      .repack = settings->repack};
  ParityRun run(options, *std::move(text));
  if (Status s = run.run(settings->model, backend); !s) return s;
  if (!options.no_tiny) {
    if (Status s = run.run_tiny(backend); !s) return s;
  }
  return run.finish();
}

}  // namespace

void add_check_parity_command(CLI::App& app) {
  auto options = std::make_shared<ParityOptions>();
  CLI::App* command = app.add_subcommand(
      kCheckParity, "Check a whole model against itself and the reference (also: check parity)");
  add_model_options(*command, options->model);
  command->add_option("--tokens", options->n_tokens, "Tokens of text that are computed")
      ->check(CLI::Range(kLeastTokens, size_t{8192}))
      ->capture_default_str();
  command
      ->add_option("--depths", options->depths,
                   "Lengths of history, drawn from the text's; 0: none")
      ->delimiter(',')
      ->check(CLI::Range(uint64_t{0}, kMaxDepth))
      ->capture_default_str();
  command->add_option("--steps", options->n_steps, "Steps from each of them")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--text", options->text_file,
                      "File with the text; without it the checkout's documents and sources");
  command->add_option("--seed", options->seed, "Seed of that history")->capture_default_str();
  command->add_flag("--no-tiny", options->no_tiny,
                    fmt::format("Leave out {} positions of a tiny model", kTinyDepth));
  command->add_flag("--json", options->as_json, "One JSON object: check, holds, rows");
  command->footer(
      "Groups of rows, single rows and histories put back must give the same bits; the KL\n"
      "divergence of each KV type from f32 is told; steps from a long history, the same for both,\n"
      "must agree with the double-precision reference, which is slow and needs 16 bytes for each\n"
      "number of KV.\n"
      "Example:\n  godwit check parity -m smollm2\n"
      "  godwit check parity -m smollm2 --kv q8_0 --depths 1024");
  command->callback([options] { finish(check_parity(*options)); });
}

}  // namespace godwit::apps
