#include "apps/chat.h"

#include <editline/readline.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/model_options.h"
#include "apps/progress.h"
#include "apps/sampling_options.h"
#include "apps/speculation_options.h"
#include "apps/stats.h"
#include "apps/system_prompt.h"
#include "engine/generate.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  SpeculationOptions speculation;
  SystemPrompt system_prompt;
};

constexpr const char* kHelp =
    "/help   this list\n"
    "/reset  forget the conversation\n"
    "/stats  figures of the last answer\n"
    "/quit   leave (or Ctrl-D)\n"
    "Ctrl-C stops an answer; twice leaves. A line that ends in \\ goes on in the next.\n";

// A line from the terminal with editing and history, or from a pipe. Empty at the end of input.
std::optional<std::string> read_line(const char* prompt) {
  if (isatty(STDIN_FILENO) == 0) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  // Ctrl-C while typing gives the line up, the next one leaves through the handler. libedit ends
  // the line without one, as for Ctrl-D.
  InterruptGuard::forget();
  std::unique_ptr<char, decltype(&std::free)> line(readline(prompt), &std::free);
  if (!line && InterruptGuard::interrupted()) {
    std::printf("\nCtrl-C again, or /quit, leaves\n");
    line.reset(readline(prompt));
  }
  if (!line) return std::nullopt;
  if (*line != '\0') add_history(line.get());
  return std::string(line.get());
}

std::optional<std::string> read_message() {
  std::optional<std::string> message = read_line("> ");
  while (message && !message->empty() && message->back() == '\\') {
    message->back() = '\n';
    const std::optional<std::string> more = read_line(". ");
    if (!more) break;
    *message += *more;
  }
  return message;
}

class Conversation {
 public:
  Conversation(engine::Engine& engine, engine::Session session, engine::GenerateSettings settings,
               std::string system_prompt)
      : engine_(engine),
        session_(std::move(session)),
        settings_(std::move(settings)),
        system_prompt_(std::move(system_prompt)) {
    reset();
  }

  void reset() {
    messages_ = json::array();
    if (!system_prompt_.empty()) {
      messages_.push_back({{"role", "system"}, {"content", system_prompt_}});
    }
    session_.reset();
    last_.reset();
  }

  // One turn. On failure the conversation is as it was before.
  Status answer(const std::string& text) {
    json messages = messages_;
    messages.push_back({{"role", "user"}, {"content", text}});
    const Result<MarkedText> prompt =
        engine_.render_chat(messages.dump(-1, ' ', false, json::error_handler_t::replace), "");
    if (!prompt) return fail(prompt.error());
    const std::vector<TokenId> tokens = engine_.encode_chat(*prompt);
    Progress bar("prompt", tokens.size(), Progress::Unit::kTokens);
    InterruptGuard::forget();
    Result<engine::GenerateResult> result =
        engine::generate(session_, tokens, settings_,
                         {.on_text =
                              [](std::string_view piece) {
                                std::fwrite(piece.data(), 1, piece.size(), stdout);
                                std::fflush(stdout);
                              },
                          .on_prompt = [&](size_t done, size_t) { bar.update(done); },
                          .cancelled = InterruptGuard::interrupted});
    if (!result) return fail(std::move(result).error());
    std::printf("\n");
    std::fflush(stdout);
    // Stopped before the first word: as if nothing had been asked.
    if (result->reason == engine::StopReason::kCancelled && result->tokens.empty()) return {};
    messages.push_back({{"role", "assistant"}, {"content", result->text}});
    messages_ = std::move(messages);
    last_ = *std::move(result);
    return {};
  }

  void print_stats() const {
    if (!last_) {
      std::printf("no answer yet\n");
      return;
    }
    std::printf("%s\ncontext %zu of %zu positions\n",
                stats_line(*last_, decode_figures(engine_, *last_)).c_str(),
                session_.tokens().size(), static_cast<size_t>(engine_.plan().n_context));
  }

 private:
  engine::Engine& engine_;
  engine::Session session_;
  engine::GenerateSettings settings_;
  std::string system_prompt_;
  json messages_;
  std::optional<engine::GenerateResult> last_;
};

enum class Next { kGoOn, kQuit };

Next handle(Conversation& conversation, const std::string& message) {
  if (message.empty()) return Next::kGoOn;
  if (message == "/quit" || message == "/exit") return Next::kQuit;
  if (message == "/help") {
    std::printf("%s", kHelp);
  } else if (message == "/reset") {
    conversation.reset();
    std::printf("forgotten\n");
  } else if (message == "/stats") {
    conversation.print_stats();
  } else if (message.front() == '/') {
    std::fprintf(stderr, "'%s' is not a command; /help lists them\n", one_line(message).c_str());
  } else {
    const Status answered = conversation.answer(message);
    if (!answered) std::fprintf(stderr, "error: %s\n", one_line(answered.error().message).c_str());
  }
  return Next::kGoOn;
}

Status chat(const ChatOptions& options) {
  Result<engine::GenerateSettings> settings = generate_settings(options.sampling);
  if (!settings) return fail(std::move(settings).error());
  settings->speculation = speculation_settings(options.speculation);
  Result<std::string> system = system_prompt_text(options.system_prompt, options.sampling);
  if (!system) return fail(std::move(system).error());
  Result<engine::EngineSettings> chosen = engine_settings(options.model);
  if (!chosen) return fail(std::move(chosen).error());
  make_room(options.speculation, *chosen);
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(*chosen);
  if (!engine) return fail(engine.error());
  // A template that does not parse is better reported before the first message.
  if (const auto found = (*engine)->chat_template(); !found) return fail(found.error());
  warn_of_default_template(**engine);
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());

  Conversation conversation(**engine, std::move(*session), *settings, *std::move(system));
  std::fprintf(stderr, "%s; /help for commands\n", (*engine)->backend().describe().c_str());
  const InterruptGuard guard;
  while (const std::optional<std::string> message = read_message()) {
    if (handle(conversation, *message) == Next::kQuit) break;
  }
  return {};
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Converse in the terminal");
  add_model_options(*command, options->model);
  add_sampling_options(*command, options->sampling);
  add_speculation_options(*command, options->speculation);
  add_system_prompt_options(*command, options->system_prompt);
  command->footer(std::string("Inside:\n") + kHelp +
                  "Example:\n  godwit chat -m smollm2 -sys \"Answer briefly.\"");
  command->callback([options] { finish(chat(*options)); });
}

}  // namespace godwit::apps
