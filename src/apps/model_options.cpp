#include "apps/model_options.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "apps/devices.h"
#include "apps/model_path.h"
#include "apps/progress.h"
#include "backend/kv_rounding.h"
#include "base/log.h"
#include "base/small_letters.h"
#include "chat/named_templates.h"
#include "engine/expert_tensors.h"
#include "os/topology.h"

namespace godwit::apps {
namespace {

constexpr size_t kMaxTextBytes = size_t{64} << 20;

void require_model(CLI::App& command) {
  // Looked up when it runs: a command may have put an option --model of its own in place of ours.
  command.parse_complete_callback([&command] {
    const auto given = [&](const char* name) { return command.get_option(name)->count() > 0; };
    if (!given("--model") && !given("--hf-repo")) throw CLI::RequiredError("--model or --hf-repo");
    if (given("--hf-file") && !given("--hf-repo"))
      throw CLI::RequiresError("--hf-file", "--hf-repo");
  });
}

}  // namespace

Result<TensorType> parse_kv_type(std::string_view name) {
  const TensorGeometry* geometry = find_tensor_geometry(name);
  if (geometry != nullptr &&
      std::ranges::find(backend::kKvTypes, geometry->type) != backend::kKvTypes.end()) {
    return geometry->type;
  }
  return fail("KV type '{}' is not supported; {} are", name, kv_type_names());
}

std::string kv_type_names() {
  std::string names;
  for (const TensorType type : backend::kKvTypes) {
    if (!names.empty()) names += type == backend::kKvTypes.back() ? " and " : ", ";
    names += kv_type_name(type);
  }
  return names;
}

std::string expert_cache_name(const experts::CachePolicy& policy) {
  switch (policy.kind) {
    case experts::CacheKind::kFull:
      return "full";
    case experts::CacheKind::kBudget:
      return std::to_string(policy.budget_mib);
    case experts::CacheKind::kMapped:
      return "mmap";
  }
  return "";
}

std::string kv_type_name(TensorType type) { return small_letters(tensor_type_name(type)); }

void add_model_source(CLI::App& command, std::string& model, HubOptions& hub) {
  CLI::Option* file =
      command.add_option("-m,--model", model, "GGUF file, or the name of a pulled model");
  add_hub_options(command, hub);
  command.get_option("--hf-repo")->excludes(file);
  require_model(command);
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  add_model_source(command, options.model, options.hub);
  command
      .add_option("-c,--ctx-size", options.n_context,
                  "Context in positions; 0: the model's own, less if memory does not hold it")
      ->capture_default_str();
  command.add_option("-t,--threads", options.n_threads, "Threads; 0: one per available core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.add_option("--ubatch-size", options.chunk_tokens, "(-ub) Prompt tokens computed at once")
      ->check(CLI::Range(size_t{1}, engine::kMaxChunkTokens))
      ->capture_default_str();
  CLI::Option* k =
      command
          .add_option("--cache-type-k", options.k_type, "(-ctk) Type of keys: " + kv_type_names())
          ->capture_default_str();
  CLI::Option* v =
      command
          .add_option("--cache-type-v", options.v_type, "(-ctv) Type of values: " + kv_type_names())
          ->capture_default_str();
  command
      .add_option(
          "--kv", options.kv_type,
          "Type of keys and values at once: q8_0 takes half the memory of f16, q4_0 a quarter")
      ->excludes(k)
      ->excludes(v);
  command.add_flag("--mlock", options.lock_memory,
                   "Keep weights, experts and context from being swapped out (cpu)");
  command
      .add_option("--activation-bits", options.activation_bits,
                  "Of activations in products with quantised weights (cpu): 16, or 8, which other "
                  "engines take: faster prompts, less exact")
      ->check(CLI::IsMember({8u, 16u}))
      ->capture_default_str();
  // What stays in the mapping is for the page cache to keep or not.
  command
      .add_flag("--no-repack", options.no_repack,
                "(-nr) Leave weights in the file's mapping and lay them out at each use (cpu): "
                "no memory for them but the page cache, slower, the same answers")
      ->excludes(command.get_option("--mlock"));
  command.add_option(
      "--expert-cache-mib", options.expert_cache,
      "Routed experts in memory: full (all), a hard budget in MiB for those used last, or mmap "
      "(the page cache decides). Without it: all, or what memory holds. No answer depends on it");
  command
      .add_option(
          "--expert-reads", options.expert_reads,
          "With a budget: direct (past the page cache, so that it is all the memory experts "
          "take) or buffered (the page cache keeps what it has room for)")
      ->check(CLI::IsMember({"direct", "buffered"}))
      ->capture_default_str();
  command
      .add_option("--expert-read-threads", options.expert_read_threads,
                  "Threads that read and pack experts; 0: 4 for direct reads, one per core for "
                  "buffered ones")
      ->check(CLI::Range(0u, experts::kMaxReadThreads))
      ->capture_default_str();
  command
      .add_option("--backend", options.backend,
                  "cpu, cuda (NVIDIA GPUs), or reference (double precision, slow)")
      ->capture_default_str();
  CLI::Option* named =
      command.add_option("--chat-template", options.chat_template,
                         "Chat template in place of the model's own: a name (chatml, llama3, "
                         "...; a wrong one lists them), or Jinja");
  command
      .add_option("--chat-template-file", options.chat_template_file, "The same from a Jinja file")
      ->excludes(named);
  command.add_option("--chat-template-kwargs", options.chat_template_kwargs,
                     "JSON object of variables for the template: {\"enable_thinking\": false}");
  add_list_devices_flag(command);
  command.add_flag("-v,--verbose", options.verbosity, "Say what is chosen and why; -vv: more");
}

Result<std::string> chat_template_source(std::string_view value) {
  if (std::optional<std::string> source = chat::named_template(value)) return *std::move(source);
  for (const std::string_view mark : {"{{", "{%", "{#", "\n"}) {
    if (value.find(mark) != std::string_view::npos) return std::string(value);
  }
  return fail("--chat-template '{}' is neither Jinja nor the name of a template; there are: {}",
              value.substr(0, 80), fmt::join(chat::template_names(), " "));
}

Result<std::string> chat_template_kwargs(const std::string& json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) return json;
  return fail("--chat-template-kwargs: expected a JSON object, found {}",
              parsed.is_discarded() ? "text that is not JSON" : parsed.type_name());
}

void warn_of_default_template(const engine::Engine& engine) {
  if (engine.chat_template_origin() != engine::Engine::TemplateOrigin::kDefault) return;
  log::warn(fmt::format("{} carries no chat template: using {} (--chat-template chooses another)",
                        engine.settings().model.string(), chat::kDefaultTemplate));
}

Result<engine::EngineSettings> engine_settings(const ModelOptions& options) {
  if (options.verbosity > 0) {
    log::set_level(options.verbosity > 1 ? log::Level::kDebug : log::Level::kInfo);
  }
  engine::EngineSettings settings;
  Result<std::filesystem::path> path = find_model(options.model, options.hub);
  if (!path) return fail(std::move(path).error());
  settings.model = *path;
  settings.backend = options.backend;
  settings.n_threads = options.n_threads;
  settings.n_context = options.n_context;
  settings.chunk_tokens = options.chunk_tokens;
  settings.lock_memory = options.lock_memory;
  settings.activation_bits = options.activation_bits == 8 ? backend::ActivationBits::kEight
                                                          : backend::ActivationBits::kSixteen;
  settings.repack = options.no_repack ? backend::Repack::kAtUse : backend::Repack::kAtLoad;
  const Result<TensorType> k =
      parse_kv_type(options.kv_type.empty() ? options.k_type : options.kv_type);
  if (!k) return fail(k.error());
  const Result<TensorType> v =
      parse_kv_type(options.kv_type.empty() ? options.v_type : options.kv_type);
  if (!v) return fail(v.error());
  settings.k_type = *k;
  settings.v_type = *v;
  if (!options.expert_cache.empty()) {
    const auto policy = experts::parse_cache_policy(options.expert_cache);
    if (!policy) return fail(Error(policy.error()).with("--expert-cache-mib"));
    settings.expert_cache = *policy;
  }
  if (options.expert_reads == "buffered") {
    settings.expert_reads.read_mode = experts::ReadMode::kBuffered;
    settings.expert_reads.n_read_threads = static_cast<uint32_t>(available_cores());
  }
  if (options.expert_read_threads != 0) {
    settings.expert_reads.n_read_threads = options.expert_read_threads;
  }
  if (!options.chat_template_file.empty()) {
    Result<std::string> source = read_text_file(options.chat_template_file);
    if (!source) return fail(std::move(source).error());
    settings.chat_template = *std::move(source);
  } else if (!options.chat_template.empty()) {
    Result<std::string> source = chat_template_source(options.chat_template);
    if (!source) return fail(std::move(source).error());
    settings.chat_template = *std::move(source);
  }
  if (!options.chat_template_kwargs.empty()) {
    Result<std::string> json = chat_template_kwargs(options.chat_template_kwargs);
    if (!json) return fail(std::move(json).error());
    settings.chat_template_kwargs = *std::move(json);
  }
  return settings;
}

Result<std::unique_ptr<engine::Engine>> load_engine(const ModelOptions& options) {
  Result<engine::EngineSettings> settings = engine_settings(options);
  if (!settings) return fail(std::move(settings).error());
  return load_engine(*settings);
}

Result<std::unique_ptr<engine::Engine>> load_engine(const engine::EngineSettings& settings) {
  std::unique_ptr<Progress> bar;
  std::string shown;  // the stage of the bar
  Result<std::unique_ptr<engine::Engine>> engine =
      engine::Engine::load(settings, [&](std::string_view stage, uint64_t done, uint64_t total) {
        if (!bar || stage != shown) {
          shown = stage;
          bar = std::make_unique<Progress>(shown, total);
        }
        bar->update(done);
      });
  if (engine) {
    log::info((*engine)->backend().describe());
    log::info(engine::describe((*engine)->plan(), engine::expert_file_bytes((*engine)->experts())));
  }
  return engine;
}

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return fail("cannot read '{}'", path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxTextBytes)
      return fail("'{}' is longer than {} MiB", path, kMaxTextBytes >> 20);
  }
  if (in.bad()) return fail("cannot read '{}'", path);
  return text;
}

}  // namespace godwit::apps
