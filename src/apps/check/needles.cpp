#include "apps/check/needles.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/check/checkout_text.h"
#include "apps/check/needle_prompt.h"
#include "apps/check/table.h"
#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/model_options.h"
#include "apps/progress.h"
#include "engine/generate.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

// Tokens of an answer, and what a template may add around a message.
constexpr size_t kAnswerTokens = 48;
constexpr uint64_t kLeastLength = 256;
constexpr uint64_t kMostLength = uint64_t{1} << 24;  // as many as an engine addresses

struct NeedleOptions {
  ModelOptions model;
  std::vector<uint64_t> lengths{2048, 8192, 30000};
  std::vector<double> depths{0.5};
  std::string text_file;
  uint64_t seed = 1;
  bool as_json = false;
};

struct Question {
  std::vector<TokenId> tokens;
  std::string passphrase;
};

class Needles {
 public:
  Needles(const NeedleOptions& options, engine::Engine& engine, std::string text)
      : options_(options), engine_(engine), text_(std::move(text)) {}

  // Errors: a text that is too short for `length`.
  [[nodiscard]] Result<Question> question(uint64_t length, double depth) const {
    Question question{
        .tokens = {},
        .passphrase = passphrase(options_.seed + length + static_cast<uint64_t>(depth * 1000))};
    // A first guess at bytes per token, then by what it came to.
    size_t n_bytes = length * 3;
    for (int round = 0; round < 8; ++round) {
      const auto tokens = tokens_of(needle_message(
          {.text = text_, .n_bytes = n_bytes, .depth = depth, .passphrase = question.passphrase}));
      if (!tokens) return fail(tokens.error());
      const size_t n = tokens->size();
      if (n <= length && n > question.tokens.size()) question.tokens = *tokens;
      if (n <= length && n + length / 50 >= length) break;
      if (n < length && n_bytes >= text_.size()) break;
      n_bytes = std::min(text_.size(), n_bytes * (length - length / 100) / n);
    }
    if (question.tokens.size() + length / 10 < length) {
      return fail(
          "check needles: the text has {} tokens, {} are wanted; give a longer one with "
          "--text",
          question.tokens.size(), length);
    }
    return question;
  }

  // Errors: what the session says.
  [[nodiscard]] Result<CheckRow> ask(engine::Session& session, const Question& question,
                                     uint64_t length, double depth) const {
    engine::GenerateSettings settings;
    settings.sampler.temperature = 0.0f;
    settings.max_tokens = static_cast<int64_t>(kAnswerTokens);
    const auto start = std::chrono::steady_clock::now();
    Progress bar(fmt::format("{} tokens", question.tokens.size()), question.tokens.size(),
                 Progress::Unit::kTokens);
    const Result<engine::GenerateResult> answer =
        engine::generate(session, question.tokens, settings,
                         {.on_text = {},
                          .on_prompt = [&](size_t done, size_t) { bar.update(done); },
                          .cancelled = InterruptGuard::interrupted});
    if (!answer) return fail(answer.error());
    if (answer->reason == engine::StopReason::kCancelled) return fail("check needles: interrupted");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool found = names_passphrase(answer->text, question.passphrase);
    const engine::EngineSettings& s = engine_.settings();
    return CheckRow{
        .name = fmt::format("{} positions, {:.0f} % deep", length, depth * 100),
        .check = fmt::format("{}/{}", kv_type_name(s.k_type), kv_type_name(s.v_type)),
        .n_cases = 1,
        .error = found ? 0.0 : 1.0,
        .bound = 0.0,
        .holds = found,
        .at = fmt::format("{} tokens ({} kept), {:.0f} s: \"{}\"", question.tokens.size(),
                          answer->n_reused, seconds.count(), one_line(answer->text))};
  }

 private:
  [[nodiscard]] Result<std::vector<TokenId>> tokens_of(const std::string& message) const {
    const json messages = json::array({{{"role", "user"}, {"content", message}}});
    const Result<MarkedText> prompt =
        engine_.render_chat(messages.dump(-1, ' ', false, json::error_handler_t::replace), "");
    if (!prompt) return fail(prompt.error());
    return engine_.encode_chat(*prompt);
  }

  const NeedleOptions& options_;
  engine::Engine& engine_;
  std::string text_;
};

Status check_needles(NeedleOptions& options) {
  for (const uint64_t length : options.lengths) {
    if (length < kLeastLength || length > kMostLength) {
      return fail("check needles: a length of {}; expected {} to {}", length, kLeastLength,
                  kMostLength);
    }
  }
  // NaN is in no range, and CLI11's check lets it pass.
  if (!std::ranges::all_of(options.depths, [](double depth) { return std::isfinite(depth); })) {
    return fail("check needles: --depths: expected numbers between 0 and 1, found nan");
  }
  Result<std::string> text =
      options.text_file.empty() ? checkout_text() : read_text_file(options.text_file);
  if (!text) return fail(std::move(text).error());
  if (options.model.n_context == 0) {
    options.model.n_context = std::ranges::max(options.lengths) + kAnswerTokens;
  }
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(options.model);
  if (!engine) return fail(engine.error());
  warn_of_default_template(**engine);
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());

  const Needles needles(options, **engine, *std::move(text));
  CheckTable table({.name = "needles", .as_json = options.as_json});
  const InterruptGuard guard;
  for (const uint64_t length : options.lengths) {
    for (const double depth : options.depths) {
      const Result<Question> question = needles.question(length, depth);
      if (!question) return fail(question.error());
      Result<CheckRow> row = needles.ask(*session, *question, length, depth);
      if (!row) return fail(std::move(row).error());
      table.add(*std::move(row));
    }
  }
  return table.finish();
}

}  // namespace

void add_check_needles_command(CLI::App& app) {
  auto options = std::make_shared<NeedleOptions>();
  CLI::App* command = app.add_subcommand(
      kCheckNeedles, "Ask for a passphrase hidden deep in real text (also: check needles)");
  add_model_options(*command, options->model);
  command->add_option("--lengths", options->lengths, "Lengths of the prompt in tokens")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--depths", options->depths, "Where it is hidden: 0 first, 1 last")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--text", options->text_file,
                      "File with the text; without it the checkout's documents and sources");
  command->add_option("--seed", options->seed, "Seed of the passphrases")->capture_default_str();
  command->add_flag("--json", options->as_json, "One JSON object: check, holds, rows");
  command->footer(
      "Greedy answers through the model's chat template; a row holds if the answer names the\n"
      "passphrase. A long prompt takes its time: minutes at 30,000 tokens of a model of 1.5 B.\n"
      "Example:\n  godwit check needles -m model.gguf --lengths 2048,8192,30000 --kv q8_0");
  command->callback([options] { finish(check_needles(*options)); });
}

}  // namespace godwit::apps
