// The flags of every command that loads a model, and the loading with its progress.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"

namespace godwit::apps {

struct ModelOptions {
  std::string model;
  std::string backend = "cpu";
  size_t n_threads = 0;
  uint64_t n_context = 0;
  size_t chunk_tokens = 512;
  std::string k_type = "f16";
  std::string v_type = "f16";
  std::string kv_type;  // both at once
  std::string chat_template_file;
  int verbosity = 0;
};

// -m, -c, -t, -ub, -ctk, -ctv, --kv, --backend, --chat-template-file, -v.
void add_model_options(CLI::App& command, ModelOptions& options);

// Errors: a name that is not a KV type here; what is supported.
[[nodiscard]] Result<TensorType> parse_kv_type(std::string_view name);
// As the flags spell it: "f16".
[[nodiscard]] std::string kv_type_name(TensorType type);

// Errors: a model that is not there; an unknown KV type name; an unreadable template file.
// Sets the log level too.
[[nodiscard]] Result<engine::EngineSettings> engine_settings(const ModelOptions& options);
// Loads with a progress bar on stderr.
[[nodiscard]] Result<std::unique_ptr<engine::Engine>> load_engine(const ModelOptions& options);

// The whole of a small text file (at most 64 MiB); "-" is standard input.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

}  // namespace godwit::apps
