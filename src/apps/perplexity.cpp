#include "apps/perplexity.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/logits_file.h"
#include "apps/model_options.h"
#include "apps/perplexity_report.h"
#include "apps/perplexity_statistics.h"
#include "apps/perplexity_windows.h"
#include "apps/token_scores.h"
#include "base/log.h"
#include "engine/session.h"
#include "os/mapped_file.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

constexpr size_t kLogitRows = 256;  // positions taken to the vocabulary at once

struct PerplexityOptions {
  ModelOptions model;
  std::string prompt;
  std::string file;
  int64_t n_chunks = -1;
  size_t stride = 0;
  int output_type = 0;
  std::string logits_file;
  bool kl_divergence = false;
  bool as_json = false;

  [[nodiscard]] PplOutput output() const { return static_cast<PplOutput>(output_type); }
};

// A base's logits, their file mapped.
struct Base {
  MappedFile mapped;
  LogitsFile file;
};

Result<Base> open_base(const std::string& path) {
  if (path.empty()) {
    return fail("--kl-divergence needs a base's logits: --kl-divergence-base FILE");
  }
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return fail(std::move(mapped).error());
  Result<LogitsFile> file = LogitsFile::parse(mapped->bytes());
  if (!file) return fail(std::move(file).error().with(path));
  return Base{std::move(*mapped), *file};
}

// What is evaluated: windows over tokens, and the base if there is one.
struct Work {
  std::vector<TokenId> tokens;
  std::vector<Window> windows;
};

// Ids of the text, with BOS where the model says so; specials are plain text.
Result<std::vector<TokenId>> text_tokens(const engine::Engine& engine,
                                         const PerplexityOptions& options) {
  std::string text = options.prompt;
  if (!options.file.empty()) {
    Result<std::string> read = read_text_file(options.file);
    if (!read) return fail(std::move(read).error());
    text = *std::move(read);
    if (text.ends_with('\n')) text.pop_back();  // as upstream
  }
  return engine.tokenizer().encode(text, tokenizer::Specials::kText,
                                   tokenizer::AddBos::kAsModelSays);
}

Result<Work> work_of_text(const engine::Engine& engine, const PerplexityOptions& options) {
  Work work;
  Result<std::vector<TokenId>> tokens = text_tokens(engine, options);
  if (!tokens) return fail(std::move(tokens).error());
  work.tokens = *std::move(tokens);
  Result<std::vector<Window>> windows = plan_windows({.n_tokens = work.tokens.size(),
                                                      .n_ctx = options.model.n_context,
                                                      .stride = options.stride,
                                                      .n_chunks = options.n_chunks});
  if (!windows) return fail(std::move(windows).error());
  work.windows = *std::move(windows);
  return work;
}

// The base's own chunks; the text plays no part.
Result<Work> work_of_base(const engine::Engine& engine, const PerplexityOptions& options,
                          const LogitsFile& base) {
  const LogitsShape& shape = base.shape();
  if (shape.n_vocab != engine.program().n_vocab) {
    return fail("{}: the base has {} tokens in its vocabulary, the model {}", options.logits_file,
                shape.n_vocab, engine.program().n_vocab);
  }
  Work work;
  const size_t wanted =
      options.n_chunks < 0 ? shape.n_chunks : static_cast<size_t>(options.n_chunks);
  const size_t n_chunks = std::min<size_t>(wanted, shape.n_chunks);
  if (n_chunks == 0) return fail("perplexity: nothing to do in 0 chunks");
  for (size_t chunk = 0; chunk < n_chunks; ++chunk) {
    const std::vector<TokenId> tokens = base.tokens(chunk);
    work.tokens.insert(work.tokens.end(), tokens.begin(), tokens.end());
    work.windows.push_back({.begin = chunk * shape.n_ctx,
                            .length = shape.n_ctx,
                            .first = shape.n_ctx / 2,
                            .begins_with_bos = true});
  }
  return work;
}

class Evaluation {
 public:
  Evaluation(const PerplexityOptions& options, engine::Engine& engine, engine::Session session,
             Isa isa, Work work, std::optional<Base> base)
      : options_(options),
        engine_(engine),
        session_(std::move(session)),
        scorer_(engine.settings().n_threads, isa, engine.program().n_vocab),
        work_(std::move(work)),
        base_(std::move(base)) {}

  Status run() {
    if (Status s = open_writer(); !s) return s;
    const InterruptGuard guard;
    start_ = Clock::now();
    for (size_t chunk = 0; chunk < work_.windows.size(); ++chunk) {
      if (Status s = evaluate(chunk); !s) return s;
      if (chunk == 0) tell_how_long();
      show_chunk(chunk);
      if (InterruptGuard::interrupted() && chunk + 1 < work_.windows.size()) {
        if (!options_.as_json) std::printf("\n");
        return fail("stopped after {} of {} chunks", chunk + 1, work_.windows.size());
      }
    }
    if (writer_) {
      if (Status s = writer_->close(); !s) return s;
    }
    report();
    return {};
  }

 private:
  using Clock = std::chrono::steady_clock;

  Status open_writer() {
    if (options_.logits_file.empty() || base_) return {};
    const std::vector<Window>& windows = work_.windows;
    const size_t n_tokens = windows.size() * windows.front().length;
    Result<LogitsWriter> writer =
        LogitsWriter::create(options_.logits_file,
                             {.n_ctx = static_cast<uint32_t>(windows.front().length),
                              .n_vocab = static_cast<uint32_t>(engine_.program().n_vocab),
                              .n_chunks = static_cast<uint32_t>(windows.size())},
                             std::span(work_.tokens).first(n_tokens));
    if (!writer) return fail(std::move(writer).error());
    writer_ = std::move(*writer);
    return {};
  }

  Status evaluate(size_t chunk) {
    const Window& window = work_.windows[chunk];
    // The last token is only predicted: nothing needs to be computed after it.
    const auto begin = work_.tokens.begin() + static_cast<std::ptrdiff_t>(window.begin);
    std::vector<TokenId> tokens(begin, begin + static_cast<std::ptrdiff_t>(window.length - 1));
    const tokenizer::Tokenizer& tokenizer = engine_.tokenizer();
    if (window.begins_with_bos && tokenizer.adds_bos()) tokens.front() = tokenizer.bos();
    n_computed_ += tokens.size();
    return session_.for_each_logits(
        tokens, window.first, [&](size_t position, std::span<const float> logits) {
          const size_t n_rows = logits.size() / engine_.program().n_vocab;
          const std::span<const TokenId> targets =
              std::span(work_.tokens).subspan(window.begin + position + 1, n_rows);
          return base_ ? compare(logits, targets, {base_->file, chunk, position - window.first})
                       : score(logits, targets);
        });
  }

  Status score(std::span<const float> logits, std::span<const TokenId> targets) {
    const std::vector<TokenScore> scores = scorer_.score(logits, targets);
    for (const TokenScore& score : scores) sum_.add(score.nll);
    return writer_ ? writer_->write(scorer_.pack(logits, scores)) : Status{};
  }

  Status compare(std::span<const float> logits, std::span<const TokenId> targets,
                 const TokenScorer::BaseRows& rows) {
    const Result<std::vector<DivergenceScore>> scores = scorer_.compare(logits, targets, rows);
    if (!scores) return fail(Error(scores.error()).with(options_.logits_file));
    for (const DivergenceScore& score : *scores) {
      sum_.add(score.nll);
      divergence_.add(score);
    }
    return {};
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  void tell_how_long() const {
    const double each = seconds();
    std::fprintf(stderr, "%zu chunks of %zu tokens, %.2f s each, about %.1f minutes in all\n",
                 work_.windows.size(), work_.windows.front().length, each,
                 each * static_cast<double>(work_.windows.size()) / 60);
  }

  void show_chunk(size_t chunk) {
    chunk_ppl_.push_back(sum_.perplexity().value);
    if (options_.as_json) return;
    if (base_ && chunk == 0) std::printf("%s", divergence_heading().c_str());
    const std::string text = base_
                                 ? divergence_chunk_text(chunk, divergence_)
                                 : chunk_text(options_.output(), chunk, work_.windows[chunk], sum_);
    std::printf("%s", text.c_str());
    std::fflush(stdout);
  }

  void report() const {
    const double elapsed = seconds();
    const double speed = elapsed > 0 ? static_cast<double>(n_computed_) / elapsed : 0;
    if (options_.as_json) {
      print_json(elapsed, speed);
      return;
    }
    if (base_) {
      std::printf("%s", divergence_text(divergence_).c_str());
    } else {
      std::printf("\n%s", final_text(sum_).c_str());
    }
    std::fprintf(stderr, "%zu tokens scored, %zu computed in %.2f s, %.1f tok/s\n", sum_.count(),
                 n_computed_, elapsed, speed);
  }

  void print_json(double elapsed, double speed) const {
    const engine::EngineSettings& s = engine_.settings();
    const Estimate ppl = sum_.perplexity();
    json out = {{"model", s.model.string()},
                {"backend", engine_.backend().describe()},
                {"k_type", kv_type_name(s.k_type)},
                {"v_type", kv_type_name(s.v_type)},
                {"n_ctx", work_.windows.front().length},
                {"stride", options_.stride},
                {"chunks", work_.windows.size()},
                {"tokens_scored", sum_.count()},
                {"tokens_computed", n_computed_},
                {"ppl", ppl.value},
                {"ppl_error", ppl.error},
                {"mean_nll", sum_.mean_nll().value},
                {"running_ppl", chunk_ppl_},
                {"seconds", elapsed},
                {"tokens_per_s", speed}};
    if (base_) out["divergence"] = divergence_json(divergence_);
    std::printf("%s\n", out.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  }

  const PerplexityOptions& options_;
  engine::Engine& engine_;
  engine::Session session_;
  TokenScorer scorer_;
  Work work_;
  std::optional<Base> base_;
  std::optional<LogitsWriter> writer_;
  PerplexitySum sum_;
  DivergenceSum divergence_;
  std::vector<double> chunk_ppl_;  // over the chunks up to each
  size_t n_computed_ = 0;
  Clock::time_point start_;
};

Status check_options(const PerplexityOptions& options) {
  if (options.model.n_context == 0) {
    return fail("perplexity: expected a context of more than 0 tokens (-c)");
  }
  if (!options.kl_divergence && options.file.empty() && options.prompt.empty()) {
    return fail("perplexity: expected a text: -f FILE, or -p TEXT");
  }
  if (options.stride > 0 && (options.kl_divergence || !options.logits_file.empty())) {
    return fail("perplexity: saved logits have no strides; leave out --ppl-stride");
  }
  return {};
}

Status perplexity(PerplexityOptions& options) {
  if (Status s = check_options(options); !s) return s;
  std::optional<Base> base;
  if (options.kl_divergence) {
    Result<Base> opened = open_base(options.logits_file);
    if (!opened) return fail(std::move(opened).error());
    base = *std::move(opened);
    options.model.n_context = base->file.shape().n_ctx;
  }
  const Result<Isa> isa = chosen_isa();
  if (!isa) return fail(isa.error());
  Result<engine::EngineSettings> settings = engine_settings(options.model);
  if (!settings) return fail(std::move(settings).error());
  settings->n_context = window_length(options.model.n_context, options.stride);
  settings->max_logit_rows = kLogitRows;
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(*settings);
  if (!engine) return fail(engine.error());
  const uint64_t trained = (*engine)->program().trained_context;
  if (settings->n_context > trained) {
    log::warn(fmt::format("the model was trained on {} positions, windows have {}", trained,
                          settings->n_context));
  }
  Result<Work> work =
      base ? work_of_base(**engine, options, base->file) : work_of_text(**engine, options);
  if (!work) return fail(std::move(work).error());
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  return Evaluation(options, **engine, *std::move(session), *isa, *std::move(work), std::move(base))
      .run();
}

}  // namespace

void add_perplexity_command(CLI::App& app) {
  auto options = std::make_shared<PerplexityOptions>();
  options->model.n_context = 512;
  CLI::App* command =
      app.add_subcommand("perplexity", "How well a model predicts a text, as llama-perplexity");
  add_model_options(*command, options->model);
  command->get_option("--ctx-size")->description("Tokens of a window");
  CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt, "Text");
  command->add_option("-f,--file", options->file, "File with the text; -: standard input")
      ->excludes(prompt);
  command->add_option("--chunks", options->n_chunks, "Windows at most; -1: all of the text")
      ->capture_default_str();
  command
      ->add_option("--ppl-stride", options->stride,
                   "Overlapping windows, each this far after the last; 0: side by side")
      ->capture_default_str();
  command
      ->add_option("--ppl-output-type", options->output_type,
                   "0: running values; 1: a line a window, with -ln p and its error")
      ->check(CLI::Range(0, 1))
      ->capture_default_str();
  command->add_option("--kl-divergence-base,--save-all-logits", options->logits_file,
                      "File to save log-probabilities to, or to compare with");
  command->add_flag("--kl-divergence", options->kl_divergence,
                    "Compare with the file instead of saving, on the tokens in it");
  command->add_flag("--json", options->as_json,
                    "One JSON object: ppl, ppl_error, running_ppl, divergence, seconds and more");
  command->footer(
      "Examples:\n"
      "  godwit perplexity -m smollm2 -f text.txt -c 512 --chunks 16\n"
      "  godwit perplexity -m model-f16.gguf -f text.txt --kl-divergence-base base.logits\n"
      "  godwit perplexity -m model-q4.gguf --kl-divergence-base base.logits --kl-divergence");
  command->callback([options] { finish(perplexity(*options)); });
}

}  // namespace godwit::apps
