#include "apps/run.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/expert_figures.h"
#include "apps/interrupt.h"
#include "apps/model_options.h"
#include "apps/progress.h"
#include "apps/sampling_options.h"
#include "apps/speculation_options.h"
#include "apps/state_options.h"
#include "apps/stats.h"
#include "apps/system_prompt.h"
#include "engine/generate.h"
#include "engine/state_file.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  SpeculationOptions speculation;
  std::string prompt;
  std::string prompt_file;
  SystemPrompt system_prompt;
  StateOptions state;
  std::string tools_file;
  bool raw = false;  // -no-cnv
  bool no_display_prompt = false;
  bool no_bos = false;
  bool as_json = false;
  bool no_stats = false;
  size_t n_probs = 0;
};

Result<std::string> prompt_text(const RunOptions& options) {
  if (options.prompt_file.empty()) return flag_text(options.sampling, options.prompt);
  Result<std::string> text = read_text_file(options.prompt_file);
  // The newline that ends a file's last line is not meant for the model (as upstream).
  if (text && text->ends_with('\n')) text->pop_back();
  return text;
}

// Ids of the prompt: through the chat template, or as raw text.
Result<std::vector<TokenId>> prompt_tokens(const engine::Engine& engine, const RunOptions& options,
                                           const std::string& text) {
  const auto bos = options.no_bos ? tokenizer::AddBos::kNever : tokenizer::AddBos::kAsModelSays;
  if (options.raw) return engine.tokenizer().encode(text, tokenizer::Specials::kParse, bos);
  warn_of_default_template(engine);
  json messages = json::array();
  const Result<std::string> system = system_prompt_text(options.system_prompt, options.sampling);
  if (!system) return fail(system.error());
  if (!system->empty()) messages.push_back({{"role", "system"}, {"content", *system}});
  messages.push_back({{"role", "user"}, {"content", text}});
  std::string tools;
  if (!options.tools_file.empty()) {
    Result<std::string> read = read_text_file(options.tools_file);
    if (!read) return fail(std::move(read).error());
    tools = *std::move(read);
  }
  const Result<MarkedText> prompt =
      engine.render_chat(messages.dump(-1, ' ', false, json::error_handler_t::replace), tools);
  if (!prompt) return fail(prompt.error());
  return engine.encode_chat(*prompt);
}

json report_json(const engine::Engine& engine, const engine::TokenReport& report) {
  const auto entry = [&](TokenId token, float logprob) {
    const std::string_view bytes = engine.tokenizer().bytes(token);
    return json{{"id", token.value}, {"token", std::string(bytes)}, {"logprob", logprob}};
  };
  json out = entry(report.token, report.logprob);
  out["top_logprobs"] = json::array();
  for (const auto& other : report.top)
    out["top_logprobs"].push_back(entry(other.token, other.logprob));
  return out;
}

json speculation_json(const engine::GenerateResult& result) {
  const engine::SpeculationStats& s = result.speculation;
  const auto ratio = [](size_t a, size_t b) {
    return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0.0;
  };
  return {{"drafted", s.n_drafted},
          {"accepted", s.n_accepted},
          {"acceptance", ratio(s.n_accepted, s.n_drafted)},
          {"tokens_per_step", ratio(result.n_decode_tokens, result.n_decode_steps)},
          {"calls", s.n_calls},
          {"draft_seconds", s.draft_seconds},
          {"gain", s.gain()}};
}

void print_json(const engine::Engine& engine, const engine::GenerateSettings& settings,
                const engine::GenerateResult& result, const DecodeFigures& figures) {
  json ids = json::array();
  for (const TokenId token : result.tokens) ids.push_back(token.value);
  json probabilities = json::array();
  for (const engine::TokenReport& report : result.reports) {
    probabilities.push_back(report_json(engine, report));
  }
  json out = {{"text", result.text},
              {"tokens", ids},
              {"stop_reason", engine::stop_reason_name(result.reason)},
              {"seed", settings.sampler.seed},
              {"logprobs", probabilities},
              {"stats",
               {{"prompt_tokens", result.n_prompt},
                {"prompt_tokens_kept", result.n_reused},
                {"prompt_tokens_per_s", figures.prompt_tokens_per_s},
                {"decode_tokens", result.tokens.size()},
                {"decode_tokens_per_s", figures.decode_tokens_per_s},
                {"bytes_per_token", figures.bytes_per_token},
                {"gbps", figures.gbps},
                {"measured_bandwidth_gbps", figures.bandwidth_gbps},
                {"peak_resident_bytes", figures.resident.peak_bytes},
                {"planned_resident_bytes", figures.resident.planned_bytes},
                {"speculation", speculation_json(result)},
                {"backend", engine.backend().describe()}}}};
  if (!result.decode_experts.layers.empty()) {
    out["stats"]["experts"] = {
        {"cache", expert_cache_name(*engine.settings().expert_cache)},
        {"prompt", expert_json(result.prompt_experts, result.n_prompt - result.n_reused)},
        {"decode", expert_json(result.decode_experts, result.n_decode_tokens)}};
  }
  std::printf("%s\n", out.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Status run(const RunOptions& options) {
  const Result<std::string> text = prompt_text(options);
  if (!text) return fail(text.error());
  if (text->empty()) return fail("the prompt is empty; give one with -p or -f");
  const Result<engine::GenerateSettings> made = generate_settings(options.sampling);
  if (!made) return fail(made.error());
  engine::GenerateSettings settings = *made;
  settings.n_logprobs = options.n_probs;
  settings.speculation = speculation_settings(options.speculation);

  Result<engine::EngineSettings> chosen = engine_settings(options.model);
  if (!chosen) return fail(std::move(chosen).error());
  make_room(options.speculation, *chosen);
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(*chosen);
  if (!engine) return fail(engine.error());
  const Result<std::vector<TokenId>> tokens = prompt_tokens(**engine, options, *text);
  if (!tokens) return fail(tokens.error());
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  const Result<std::optional<std::string>> note = take_up_state(options.state, *session);
  if (!note) return fail(note.error());

  const bool shows_prompt = options.raw && !options.no_display_prompt && !options.as_json;
  Progress bar("prompt", tokens->size(), Progress::Unit::kTokens);
  const InterruptGuard guard;
  const Result<engine::GenerateResult> result =
      engine::generate(*session, *tokens, settings,
                       {.on_text =
                            [&](std::string_view piece) {
                              if (!options.as_json) show(piece);
                            },
                        .on_prompt =
                            [&](size_t done, size_t total) {
                              bar.update(done);
                              // Only now, so that the bar does not draw over it.
                              if (done == total && shows_prompt) show(*text);
                            },
                        .cancelled = InterruptGuard::interrupted});
  if (!result) return fail(result.error());

  const DecodeFigures figures =
      options.no_stats ? DecodeFigures{} : decode_figures(**engine, *result);
  if (options.as_json) {
    print_json(**engine, settings, *result, figures);
  } else {
    std::printf("\n");
    std::fflush(stdout);
    if (!options.no_stats) std::fprintf(stderr, "\n%s\n", stats_line(*result, figures).c_str());
  }
  if (options.state.file.empty()) return {};
  // The messages of a chat stay with its state.
  return engine::save_session(*session, options.state.file, note->value_or(""));
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Answer one prompt");
  add_model_options(*command, options->model);
  add_sampling_options(*command, options->sampling);
  add_speculation_options(*command, options->speculation);
  command->add_option("-p,--prompt", options->prompt, "Prompt");
  command->add_option("-f,--file", options->prompt_file, "File with the prompt; -: standard input")
      ->excludes("--prompt");
  add_system_prompt_options(*command, options->system_prompt);
  add_state_option(*command, options->state);
  command->add_option("--tools", options->tools_file, "JSON file with tool definitions");
  command->add_flag("--no-conversation", options->raw,
                    "(-no-cnv) Complete the raw prompt, without the chat template");
  command->add_flag("--no-display-prompt", options->no_display_prompt,
                    "With -no-cnv: print the continuation only");
  command->add_flag("--no-bos", options->no_bos, "Do not begin with the BOS token");
  command
      ->add_option("--n-probs", options->n_probs,
                   "With --json: log-probabilities of the n likeliest tokens")
      ->capture_default_str();
  command->add_flag("--json", options->as_json,
                    "One JSON object on stdout: text, tokens, stop_reason, seed, logprobs, stats");
  command->add_flag("--no-stats", options->no_stats, "No figures on stderr, and none measured");
  command->footer(
      "Examples:\n"
      "  godwit run -m smollm2 -p \"Why is the sky blue?\"\n"
      "  godwit run -m model.gguf -no-cnv -p \"Once upon a time\" -n 64 --temp 0\n"
      "  godwit run -m model.gguf -f book.txt --state book.state -n 1   # the next is quick\n"
      "  git diff | godwit run -m model.gguf -f - -sys \"Summarise this change.\"");
  command->callback([options] { finish(run(*options)); });
}

}  // namespace godwit::apps
