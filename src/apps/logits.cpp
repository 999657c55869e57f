#include "apps/logits.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/model_options.h"
#include "apps/router_gaps.h"
#include "engine/session.h"
#include "sampling/sampler.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

struct LogitsOptions {
  ModelOptions model;
  std::string input;
  std::string output;
  size_t n_generate = 0;
  bool stepwise = false;
  bool router_gaps = false;
};

// Text of a wrong value, however long it is.
std::string excerpt(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
}

Result<std::vector<TokenId>> read_ids(const json& ids) {
  if (!ids.is_array()) return fail("a prompt is {}, expected a list of ids", excerpt(ids));
  std::vector<TokenId> prompt;
  for (const json& id : ids) {
    // The vocabulary is checked later; here only what would not survive the conversion.
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return fail("a prompt holds {}, expected ids", excerpt(id));
    }
    prompt.push_back({id.get<int32_t>()});
  }
  if (prompt.empty()) return fail("a prompt is empty");
  return prompt;
}

Result<std::vector<std::vector<TokenId>>> read_prompts(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return fail(text.error());
  const json parsed = json::parse(*text, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("prompts") || !parsed["prompts"].is_array()) {
    return fail("{}: expected {{\"prompts\": [[ids...], ...]}}", path);
  }
  std::vector<std::vector<TokenId>> prompts;
  for (const json& ids : parsed["prompts"]) {
    Result<std::vector<TokenId>> prompt = read_ids(ids);
    if (!prompt) return fail(std::move(prompt).error().with(path));
    prompts.push_back(*std::move(prompt));
  }
  return prompts;
}

Status write_row(std::ofstream& out, std::span<const float> logits) {
  out.write(reinterpret_cast<const char*>(logits.data()),
            static_cast<std::streamsize>(logits.size_bytes()));
  if (!out) return fail("cannot write the logits: disk full?");
  return {};
}

// The prompt's last logits, then a greedy row per generated token.
Result<json> evaluate(engine::Session& session, std::span<const TokenId> prompt,
                      const LogitsOptions& options, std::ofstream& out) {
  // Token by token is the decode path; all at once is the prompt path.
  const size_t first = options.stepwise ? 1 : prompt.size();
  if (Status s = session.set_prompt(prompt.first(std::min(first, prompt.size())), {}); !s) {
    return fail(s.error());
  }
  for (size_t i = first; i < prompt.size(); ++i) {
    if (Status s = session.append(prompt[i]); !s) return fail(s.error());
  }
  json tokens = json::array();
  if (Status s = write_row(out, session.logits()); !s) return fail(s.error());
  for (size_t i = 0; i < options.n_generate; ++i) {
    const TokenId token = sampling::argmax(session.logits());
    tokens.push_back(token.value);
    if (i + 1 == options.n_generate) break;
    if (Status s = session.append(token); !s) return fail(s.error());
    if (Status s = write_row(out, session.logits()); !s) return fail(s.error());
  }
  return tokens;
}

// The gap of every token whose row of logits was written.
Result<json> gaps_of_rows(const engine::Engine& engine, std::span<const TokenId> prompt,
                          const json& generated) {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  for (const json& token : generated) tokens.push_back({token.get<int32_t>()});
  const size_t n_rows = std::max<size_t>(1, generated.size());
  tokens.resize(prompt.size() + n_rows - 1);  // nothing was computed after the last one
  const Result<std::vector<double>> gaps = router_gaps(engine, tokens, n_rows);
  if (!gaps) return fail(gaps.error());
  json list = json::array();
  for (const double gap : *gaps) list.push_back(std::isfinite(gap) ? json(gap) : json(nullptr));
  return list;
}

Status logits(const LogitsOptions& options) {
  const Result<std::vector<std::vector<TokenId>>> prompts = read_prompts(options.input);
  if (!prompts) return fail(prompts.error());
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(options.model);
  if (!engine) return fail(engine.error());
  std::ofstream out(options.output, std::ios::binary | std::ios::trunc);
  if (!out) return fail("cannot write '{}'", options.output);

  json header = {{"n_vocab", (*engine)->program().n_vocab},
                 {"rows_per_prompt", std::max<size_t>(1, options.n_generate)},
                 {"backend", (*engine)->backend().describe()},
                 {"tokens", json::array()}};
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  for (const std::vector<TokenId>& prompt : *prompts) {
    session->reset();
    Result<json> tokens = evaluate(*session, prompt, options, out);
    if (!tokens) return fail(std::move(tokens).error());
    if (options.router_gaps) {
      Result<json> gaps = gaps_of_rows(**engine, prompt, *tokens);
      if (!gaps) return fail(std::move(gaps).error());
      header["router_gaps"].push_back(*std::move(gaps));
    }
    header["tokens"].push_back(*std::move(tokens));
  }
  out.close();
  if (!out) return fail("cannot write '{}': disk full?", options.output);
  std::printf("%s\n", header.dump().c_str());
  return {};
}

}  // namespace

void add_logits_command(CLI::App& app) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* command = app.add_subcommand("logits", "Raw logits, for scripts that compare engines");
  add_model_options(*command, options->model);
  command->add_option("-f,--file", options->input, "JSON {\"prompts\": [[ids...], ...]}")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "Little-endian f32 [prompts, rows per prompt, vocabulary]")
      ->required();
  command
      ->add_option("--generate", options->n_generate,
                   "Greedy tokens per prompt, one row of logits each; 0: the prompt's last row")
      ->capture_default_str();
  command->add_flag("--stepwise", options->stepwise, "Take the prompt token by token");
  command->add_flag("--router-gaps", options->router_gaps,
                    "Also how near the routers of each row came to another choice of experts");
  command->footer("Example:\n  godwit logits -m smollm2 -f prompts.json -o logits.bin --kv f32");
  command->callback([options] { finish(logits(*options)); });
}

}  // namespace godwit::apps
