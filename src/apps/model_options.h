// The flags of every command that loads a model, and the loading with its progress.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "apps/hub_options.h"
#include "base/result.h"
#include "engine/engine.h"

namespace godwit::apps {

struct ModelOptions {
  std::string model;
  HubOptions hub;  // in place of the model
  std::string backend = "cpu";
  size_t n_threads = 0;
  uint64_t n_context = 0;
  size_t chunk_tokens = 512;
  uint32_t activation_bits = 16;
  bool lock_memory = false;
  bool no_repack = false;
  std::string k_type = "f16";
  std::string v_type = "f16";
  std::string expert_cache;  // full, mmap, MiB; "": as memory allows
  std::string expert_reads = "direct";
  uint32_t expert_read_threads = 0;
  std::string kv_type;        // both at once
  std::string chat_template;  // a name, or Jinja
  std::string chat_template_file;
  std::string chat_template_kwargs;
  int verbosity = 0;
};

// -m, and in its place -hf with its like (apps/hub_options.h). One of them is required.
void add_model_source(CLI::App& command, std::string& model, HubOptions& hub);

// -m, -hf, -c, -t, -ub, -ctk, -ctv, --kv, --backend, --chat-template, -v and their like.
void add_model_options(CLI::App& command, ModelOptions& options);

// Errors: a name that is not a KV type here; what is supported.
[[nodiscard]] Result<TensorType> parse_kv_type(std::string_view name);
// Those that are, as the flags spell them: "f32, f16, ... and q4_0".
[[nodiscard]] std::string kv_type_names();
// As --expert-cache-mib spells it: "full", "mmap", "4096".
[[nodiscard]] std::string expert_cache_name(const experts::CachePolicy& policy);
// As the flags spell it: "f16".
[[nodiscard]] std::string kv_type_name(TensorType type);

// The Jinja source of a --chat-template: a name's, or the text itself if it looks like one.
// Errors: neither; the names that are known.
[[nodiscard]] Result<std::string> chat_template_source(std::string_view value);
// Errors: not a JSON object.
[[nodiscard]] Result<std::string> chat_template_kwargs(const std::string& json);

// Errors: a model that is not there; an unknown KV type name; a template that cannot be had.
// Sets the log level too.
[[nodiscard]] Result<engine::EngineSettings> engine_settings(const ModelOptions& options);
// Says so where the file's chat template is missing and a default stands in. Call before a chat.
void warn_of_default_template(const engine::Engine& engine);

// Loads with a progress bar on stderr.
[[nodiscard]] Result<std::unique_ptr<engine::Engine>> load_engine(const ModelOptions& options);
[[nodiscard]] Result<std::unique_ptr<engine::Engine>> load_engine(
    const engine::EngineSettings& settings);

// The whole of a small text file (at most 64 MiB); "-" is standard input.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

}  // namespace godwit::apps
