// Engine is the loaded model, immutable once loaded: file, tokenizer, chat template, Program and
// the backend that holds its weights. Sessions (session.h) are the mutable timelines upon it. The
// command line and any server see a model only through these two.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "chat/template.h"
#include "engine/memory_plan.h"
#include "experts/route_trace.h"
#include "experts/source.h"
#include "experts/store.h"
#include "gguf/file.h"
#include "program/program.h"
#include "tokenizer/tokenizer.h"

namespace godwit::engine {

constexpr size_t kMaxChunkTokens = 8192;
constexpr size_t kMaxLogitBytes = size_t{64} << 20;

struct EngineSettings {
  std::filesystem::path model;
  std::string backend = "cpu";
  size_t n_threads = 0;    // 0: one per available core
  uint64_t n_context = 0;  // positions; 0: the model's own, or as many as memory holds
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
  backend::ActivationBits activation_bits = backend::ActivationBits::kSixteen;
  bool lock_memory = false;  // as backend::BackendSettings has it
  backend::Repack repack = backend::Repack::kAtLoad;
  size_t chunk_tokens = 512;  // prompt tokens of one backend call
  // Positions whose logits a session holds at once (Session::for_each_logits); lowered to
  // chunk_tokens and to what kMaxLogitBytes hold of the vocabulary.
  size_t max_logit_rows = 1;
  // Routed experts: absent, all of them resident, or as many as memory holds.
  std::optional<experts::CachePolicy> expert_cache;
  experts::StoreOptions expert_reads;
  // A recorded choice of experts in place of the router's, for measurements; "": none.
  std::filesystem::path route_trace;
  // Tokens that a session may take back although the model has recurrent states
  // (Session::append); lowered to max_logit_rows - 1.
  size_t max_tentative_rows = 0;
  bool with_mtp = false;  // load the head that predicts further tokens; a file without is an error
  std::string chat_template;         // Jinja source that replaces the file's; "" for the file's own
  std::string chat_template_kwargs;  // JSON object of variables for the template, or ""
};

class Session;

class Engine {
 public:
  // Errors: everything the layers below report, a context that does not fit in memory, a chat
  // template that does not parse is an error only when it is used.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> load(const EngineSettings& settings,
                                                            const backend::Progress& progress);

  [[nodiscard]] const EngineSettings& settings() const { return settings_; }
  [[nodiscard]] const gguf::File& file() const { return file_; }
  [[nodiscard]] const program::Program& program() const { return program_; }
  [[nodiscard]] const tokenizer::Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] const MemoryPlan& plan() const { return plan_; }
  [[nodiscard]] const experts::ExpertSource& experts() const { return *experts_; }
  [[nodiscard]] backend::Backend& backend() const { return *backend_; }

  // The chat template, or why it does not parse. A file without one gets chat::kDefaultTemplate.
  [[nodiscard]] Result<const chat::Template*> chat_template() const;
  enum class TemplateOrigin { kFile, kSettings, kDefault };
  [[nodiscard]] TemplateOrigin chat_template_origin() const { return chat_template_origin_; }
  // Messages in the OpenAI format to a marked prompt that ends where the assistant begins.
  [[nodiscard]] Result<MarkedText> render_chat(const std::string& messages_json,
                                               const std::string& tools_json) const;

  // Ids of a rendered chat: BOS only if the template did not write it.
  [[nodiscard]] std::vector<TokenId> encode_chat(const MarkedText& prompt) const;

  [[nodiscard]] Result<Session> new_session();

 private:
  Engine(EngineSettings settings, gguf::File file, tokenizer::Tokenizer tokenizer);
  void choose_chat_template();

  EngineSettings settings_;
  gguf::File file_;
  tokenizer::Tokenizer tokenizer_;
  program::Program program_;
  std::optional<experts::RouteTrace> route_trace_;
  std::optional<experts::ExpertSource> experts_;         // set by load(); points into file_
  std::optional<Result<chat::Template>> chat_template_;  // set by load()
  TemplateOrigin chat_template_origin_ = TemplateOrigin::kFile;
  MemoryPlan plan_;
  // Refers to program_, file_ and experts_: destroyed first.
  std::unique_ptr<backend::Backend> backend_;
};

}  // namespace godwit::engine
