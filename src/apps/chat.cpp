#include "apps/chat.h"

#include <editline/readline.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/chat_note.h"
#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/model_options.h"
#include "apps/progress.h"
#include "apps/sampling_options.h"
#include "apps/speculation_options.h"
#include "apps/state_options.h"
#include "apps/stats.h"
#include "apps/system_prompt.h"
#include "base/log.h"
#include "engine/generate.h"
#include "engine/prefix_tree.h"
#include "engine/state_file.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  SpeculationOptions speculation;
  SystemPrompt system_prompt;
  StateOptions state;
};

constexpr const char* kHelp =
    "/help   this list\n"
    "/reset  forget the conversation\n"
    "/regen  answer the last message again, with the next seed\n"
    "/undo   take the last message and its answer back\n"
    "/save   write the conversation to --state now, or to /save FILE\n"
    "/stats  figures of the last answer\n"
    "/quit   leave (or Ctrl-D); writes --state\n"
    "Ctrl-C stops an answer; twice leaves, and writes --state. A line that ends in \\ goes on in\n"
    "the next.\n";

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
    messages_.clear();
    if (!system_prompt_.empty()) messages_.push_back({"system", system_prompt_});
    session_.reset();
    last_.reset();
  }

  // Goes on with what a state file held; nothing is computed again.
  Status take_up(const StateOptions& options) {
    const Result<std::optional<std::string>> note = take_up_state(options, session_);
    if (!note) return fail(note.error());
    if (!*note) return {};
    Result<std::vector<ChatMessage>> saved = parse_chat_note(**note);
    if (!saved) return fail(std::move(saved).error().with(options.file));
    if (saved->empty()) return {};
    const bool same = saved->front() == ChatMessage{"system", system_prompt_};
    if (!system_prompt_.empty() && !same) {
      log::warn("the saved conversation keeps its own system message; /reset takes the new one");
    }
    messages_ = *std::move(saved);
    return {};
  }

  [[nodiscard]] Status save(const std::string& file) const {
    return engine::save_session(session_, file, chat_note(messages_));
  }

  // One turn. On failure the conversation is as it was before.
  Status answer(const std::string& text) {
    std::vector<ChatMessage> messages = messages_;
    messages.push_back({"user", text});
    const Result<MarkedText> prompt = engine_.render_chat(messages_json(messages), "");
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
    messages.push_back({"assistant", result->text});
    messages_ = std::move(messages);
    last_ = *std::move(result);
    session_.end_turn();
    return {};
  }

  // Takes the last turn back and returns what was asked; the answer's state stays in the tree.
  std::optional<std::string> undo() {
    const size_t n = messages_.size();
    if (n < 2 || messages_[n - 1].role != "assistant" || messages_[n - 2].role != "user") {
      return std::nullopt;
    }
    std::string text = messages_[n - 2].content;
    messages_.resize(n - 2);
    last_.reset();
    return text;
  }

  // The last message again, with the next seed: the same one would say the same.
  Status regenerate() {
    const std::vector<ChatMessage> before = messages_;
    const std::optional<std::string> text = undo();
    if (!text) return fail("there is no answer yet");
    ++settings_.sampler.seed;
    const Status answered = answer(*text);
    if (messages_.size() < before.size()) messages_ = before;  // nothing came
    return answered;
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
  std::vector<ChatMessage> messages_;
  std::optional<engine::GenerateResult> last_;
};

enum class Next { kGoOn, kQuit };

void report(const Status& status) {
  if (!status) std::fprintf(stderr, "error: %s\n", one_line(status.error().message).c_str());
}

// "/save" and "/save FILE".
Status save(const Conversation& conversation, const StateOptions& state, std::string_view file) {
  while (file.starts_with(' ')) file.remove_prefix(1);
  const std::string path = file.empty() ? state.file : std::string(file);
  if (path.empty()) return fail("no --state was given; /save FILE names one");
  Status saved = conversation.save(path);
  if (saved) std::printf("saved to %s\n", path.c_str());
  return saved;
}

Next handle(Conversation& conversation, const StateOptions& state, const std::string& message) {
  if (message.empty()) return Next::kGoOn;
  if (message == "/quit" || message == "/exit") return Next::kQuit;
  if (message == "/help") {
    std::printf("%s", kHelp);
  } else if (message == "/reset") {
    conversation.reset();
    std::printf("forgotten\n");
  } else if (message == "/regen") {
    report(conversation.regenerate());
  } else if (message == "/undo") {
    std::printf(conversation.undo() ? "taken back\n" : "nothing to take back\n");
  } else if (message == "/save" || message.starts_with("/save ")) {
    report(save(conversation, state, std::string_view(message).substr(5)));
  } else if (message == "/stats") {
    conversation.print_stats();
  } else if (message.front() == '/') {
    std::fprintf(stderr, "'%s' is not a command; /help lists them\n", one_line(message).c_str());
  } else {
    report(conversation.answer(message));
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

  engine::PrefixTree tree(session->tree_settings(cache_budget_bytes(options.state, **engine)));
  session->use_tree(&tree);
  Conversation conversation(**engine, std::move(*session), *settings, *std::move(system));
  if (Status s = conversation.take_up(options.state); !s) return s;
  std::fprintf(stderr, "%s; /help for commands\n", (*engine)->backend().describe().c_str());
  const std::string& file = options.state.file;
  const InterruptGuard guard(file.empty() ? InterruptGuard::Second::kEndsAtOnce
                                          : InterruptGuard::Second::kAsksToLeave);
  while (!InterruptGuard::leaving()) {
    const std::optional<std::string> message = read_message();
    if (!message || handle(conversation, options.state, *message) == Next::kQuit) break;
  }
  if (file.empty()) return {};
  // What was saved before stays until all of this is on the disk.
  if (InterruptGuard::leaving()) {
    std::fprintf(stderr, "writing %s; Ctrl-C once more leaves without\n", file.c_str());
  }
  return conversation.save(file);
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Converse in the terminal");
  add_model_options(*command, options->model);
  add_sampling_options(*command, options->sampling);
  add_speculation_options(*command, options->speculation);
  add_system_prompt_options(*command, options->system_prompt);
  add_state_option(*command, options->state);
  add_cache_option(*command, options->state);
  command->footer(std::string("Inside:\n") + kHelp +
                  "Example:\n  godwit chat -m smollm2 -sys \"Answer briefly.\" --state talk.state");
  command->callback([options] {
    finish(chat(*options));
    if (InterruptGuard::leaving()) throw CLI::RuntimeError(130);
  });
}

}  // namespace godwit::apps
