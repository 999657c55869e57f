#include "engine/engine.h"

#include <unistd.h>

#include <algorithm>

#include "chat/named_templates.h"
#include "engine/expert_tensors.h"
#include "engine/planned_backend.h"
#include "engine/session.h"
#include "model/registry.h"
#include "os/cpu_features.h"
#include "os/memory.h"
#include "os/topology.h"

namespace godwit::engine {
namespace {

constexpr uint64_t kMaxContext = uint64_t{1} << 24;

// Loaded between two times that the file's memory is given back.
constexpr uint64_t kDiscardBytes = uint64_t{16} << 20;

// Progress that gives back what was read of the file as it goes, so that a model is not resident
// twice, once as the file has it and once as the backend does.
backend::Progress discarding(const gguf::File& file, const backend::Progress& progress) {
  return [&file, &progress, last = uint64_t{0}](std::string_view stage, uint64_t done,
                                                uint64_t total) mutable {
    if (done >= last + kDiscardBytes) {
      file.discard_read();
      last = done;
    }
    if (progress) progress(stage, done, total);
  };
}

std::string token_text(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  return id.exists() ? std::string(tokenizer.bytes(id)) : std::string();
}

size_t fitting_logit_rows(const EngineSettings& settings, uint64_t n_vocab) {
  const size_t fits = kMaxLogitBytes / (sizeof(float) * n_vocab);
  return std::max<size_t>(1, std::min({settings.max_logit_rows, settings.chunk_tokens, fits}));
}

Status check_settings(const EngineSettings& settings) {
  if (settings.n_context > kMaxContext) {
    return fail("a context of {} positions is more than Godwit addresses ({})", settings.n_context,
                kMaxContext);
  }
  if (settings.chunk_tokens == 0 || settings.chunk_tokens > kMaxChunkTokens) {
    return fail("a prompt chunk of {} tokens: expected 1 to {}", settings.chunk_tokens,
                kMaxChunkTokens);
  }
  return {};
}

}  // namespace

Engine::Engine(EngineSettings settings, gguf::File file, tokenizer::Tokenizer tokenizer)
    : settings_(std::move(settings)), file_(std::move(file)), tokenizer_(std::move(tokenizer)) {}

Result<std::unique_ptr<Engine>> Engine::load(const EngineSettings& settings,
                                             const backend::Progress& progress) {
  if (Status s = check_settings(settings); !s) return fail(s.error());
  Result<gguf::File> file = gguf::File::open(settings.model);
  if (!file) return fail(std::move(file).error());
  Result<model::Model> model =
      model::build_model(*file, {.n_positions = settings.n_context, .with_mtp = settings.with_mtp});
  if (!model) return fail(std::move(model).error());
  if (settings.with_mtp && model->program.mtp.empty()) {
    return fail("{} has no head that predicts further tokens (nextn tensors)",
                settings.model.string());
  }
  Result<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::load(*file);
  if (!tokenizer) return fail(std::move(tokenizer).error().with(settings.model.string()));
  if (static_cast<uint64_t>(tokenizer->size()) > model->program.n_vocab) {
    return fail("{}: the vocabulary has {} tokens, the embedding {} rows", settings.model.string(),
                tokenizer->size(), model->program.n_vocab);
  }

  std::unique_ptr<Engine> engine(new Engine(settings, std::move(*file), std::move(*tokenizer)));
  engine->program_ = std::move(model->program);
  EngineSettings& own = engine->settings_;
  if (own.n_threads == 0) own.n_threads = available_cores();
  own.max_logit_rows = fitting_logit_rows(own, engine->program_.n_vocab);
  own.max_tentative_rows = std::min(own.max_tentative_rows, own.max_logit_rows - 1);

  Result<experts::ExpertSource> experts = find_experts(engine->file_, engine->program_);
  if (!experts) return fail(std::move(experts).error());
  engine->experts_ = *std::move(experts);
  if (!own.route_trace.empty()) {
    if (own.backend != "cpu") {
      return fail("backend {} does not replay routes; cpu does", own.backend);
    }
    auto trace = experts::RouteTrace::open(own.route_trace);
    if (!trace) return fail(std::move(trace).error());
    engine->route_trace_ = *std::move(trace);
  }
  if (own.activation_bits != backend::ActivationBits::kSixteen && own.backend != "cpu") {
    return fail("backend {} does not round activations to 8 bits; cpu does", own.backend);
  }
  if (own.lock_memory && own.backend != "cpu") {
    return fail("backend {} does not lock its memory; cpu does", own.backend);
  }
  Result<PlannedBackend> planned =
      plan_backend(own,
                   {.program = engine->program_,
                    .experts = *engine->experts_,
                    .route_trace = engine->route_trace_ ? &*engine->route_trace_ : nullptr},
                   available_memory_bytes());
  if (!planned) return fail(std::move(planned).error());
  own.expert_cache = planned->expert_cache;
  engine->plan_ = planned->plan;
  own.n_context = planned->plan.n_context;
  if (Status s = planned->backend->load(engine->program_, model->weights,
                                        discarding(engine->file_, progress));
      !s) {
    return fail(s.error());
  }
  engine->file_.discard_read();
  engine->backend_ = std::move(planned->backend);

  engine->choose_chat_template();
  return engine;
}

void Engine::choose_chat_template() {
  std::string source = settings_.chat_template;
  if (!source.empty()) {
    chat_template_origin_ = TemplateOrigin::kSettings;
  } else if (const auto found = file_.get_string("tokenizer.chat_template");
             found && *found && !(*found)->empty()) {
    source = std::string(**found);
  } else {
    chat_template_origin_ = TemplateOrigin::kDefault;
    source = chat::named_template(chat::kDefaultTemplate).value_or("");
  }
  chat_template_ = chat::Template::parse(source);
}

Result<const chat::Template*> Engine::chat_template() const {
  if (!*chat_template_) return fail(chat_template_->error());
  return &**chat_template_;
}

Result<MarkedText> Engine::render_chat(const std::string& messages_json,
                                       const std::string& tools_json) const {
  const Result<const chat::Template*> found = chat_template();
  if (!found) return fail(found.error());
  return (*found)->render({.messages_json = messages_json,
                           .tools_json = tools_json,
                           .extra_json = settings_.chat_template_kwargs,
                           .bos_token = token_text(tokenizer_, tokenizer_.bos()),
                           .eos_token = token_text(tokenizer_, tokenizer_.eos()),
                           .add_generation_prompt = true});
}

std::vector<TokenId> Engine::encode_chat(const MarkedText& prompt) const {
  const std::string bos = token_text(tokenizer_, tokenizer_.bos());
  const bool has_bos = !bos.empty() && prompt.text.starts_with(bos);
  return tokenizer_.encode(prompt,
                           has_bos ? tokenizer::AddBos::kNever : tokenizer::AddBos::kAsModelSays);
}

Result<Session> Engine::new_session() {
  const Result<backend::ContextId> context =
      backend_->make_context({.n_positions = plan_.n_context,
                              .k_type = settings_.k_type,
                              .v_type = settings_.v_type,
                              .max_rows = settings_.chunk_tokens,
                              .max_logit_rows = settings_.max_logit_rows,
                              .max_tentative_rows = settings_.max_tentative_rows});
  if (!context) return fail(context.error());
  return Session(*this, *context);
}

}  // namespace godwit::engine
