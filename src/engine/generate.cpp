#include "engine/generate.h"

#include <chrono>
#include <limits>

#include "engine/stop_strings.h"
#include "program/traffic.h"
#include "tokenizer/utf8_stream.h"

namespace godwit::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Tokens to shown text: bytes, whole characters, stop strings.
class TextSink {
 public:
  TextSink(const tokenizer::Tokenizer& tokenizer, const GenerateSettings& settings,
           const GenerateCallbacks& callbacks)
      : tokenizer_(tokenizer),
        stops_(settings.stops),
        show_special_(settings.show_special),
        callbacks_(callbacks) {}

  void push(TokenId token) {
    const bool control = tokenizer_.kind(token) == tokenizer::TokenKind::kControl;
    if (control && !show_special_) return;
    show(stops_.push(utf8_.push(tokenizer_.bytes(token))));
  }
  void finish() {
    show(stops_.push(utf8_.finish()));
    show(stops_.finish());
  }
  [[nodiscard]] bool stopped() const { return stops_.stopped(); }
  [[nodiscard]] std::string take_text() { return std::move(text_); }

 private:
  void show(const std::string& text) {
    if (text.empty()) return;
    text_ += text;
    if (callbacks_.on_text) callbacks_.on_text(text);
  }

  const tokenizer::Tokenizer& tokenizer_;
  tokenizer::Utf8Stream utf8_;
  StopStrings stops_;
  bool show_special_;
  const GenerateCallbacks& callbacks_;
  std::string text_;
};

uint64_t decode_traffic(const Engine& engine, size_t position, size_t n_rows) {
  return program::traffic_of(engine.program(), {.position = position,
                                                .n_rows = n_rows,
                                                .k_type = engine.settings().k_type,
                                                .v_type = engine.settings().v_type})
      .total();
}

// Tokens to append after the one that `result` ends with; the last of all is not appended.
size_t n_left(const GenerateSettings& settings, const GenerateResult& result) {
  if (settings.max_tokens < 0) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(settings.max_tokens) - result.tokens.size() - 1;
}

void report(const GenerateSettings& settings, std::span<const float> logits, TokenId token,
            GenerateResult& result) {
  if (settings.n_logprobs == 0) return;
  result.reports.push_back({.token = token,
                            .logprob = sampling::logprob(logits, token),
                            .top = sampling::top_logprobs(logits, settings.n_logprobs)});
}

Result<sampling::Sampler> make_sampler(const Session& session, const GenerateSettings& settings) {
  return sampling::Sampler::create(settings.sampler, &session.engine().tokenizer());
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText:
      return "end of text";
    case StopReason::kStopString:
      return "stop string";
    case StopReason::kMaxTokens:
      return "token limit";
    case StopReason::kContextFull:
      return "context full";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "?";
}

Result<GenerateResult> generate(Session& session, std::span<const TokenId> prompt,
                                const GenerateSettings& settings,
                                const GenerateCallbacks& callbacks) {
  Result<sampling::Sampler> sampler = make_sampler(session, settings);
  if (!sampler) return fail(std::move(sampler).error());
  const Engine& engine = session.engine();
  const auto cancelled = [&] { return callbacks.cancelled && callbacks.cancelled(); };

  GenerateResult result;
  result.n_prompt = prompt.size();
  const ExpertReport experts_before = expert_report(engine);
  const Clock::time_point prompt_start = Clock::now();
  const Status prefilled = session.set_prompt(prompt, [&](size_t done, size_t total) {
    if (callbacks.on_prompt) callbacks.on_prompt(done, total);
    return !cancelled();
  });
  result.prompt_seconds = seconds_since(prompt_start);
  result.n_reused = session.n_reused();
  result.n_from_tree = session.n_from_tree();
  if (!prefilled) {
    if (!cancelled()) return fail(prefilled.error());
    result.reason = StopReason::kCancelled;
    return result;
  }

  TextSink sink(engine.tokenizer(), settings, callbacks);
  Speculation timeline(session, settings.speculation);
  const ExpertReport experts_between = expert_report(engine);
  result.prompt_experts = experts_between.since(experts_before);
  const Clock::time_point decode_start = Clock::now();
  while (true) {
    if (settings.max_tokens >= 0 &&
        std::cmp_greater_equal(result.tokens.size(), settings.max_tokens)) {
      result.reason = StopReason::kMaxTokens;
      break;
    }
    if (cancelled()) {
      result.reason = StopReason::kCancelled;
      break;
    }
    const Position position{static_cast<int32_t>(timeline.tokens().size())};
    const TokenId token = sampler->sample(timeline.logits(), timeline.tokens(), position);
    if (!settings.ignore_end && engine.tokenizer().ends_generation(token)) {
      result.reason = StopReason::kEndOfText;
      break;
    }
    report(settings, timeline.logits(), token, result);
    result.tokens.push_back(token);
    sink.push(token);
    if (sink.stopped()) {
      result.reason = StopReason::kStopString;
      break;
    }
    // The last token of a limited generation needs no logits after it.
    if (settings.max_tokens >= 0 && std::cmp_equal(result.tokens.size(), settings.max_tokens)) {
      continue;
    }
    if (timeline.tokens().size() >= engine.plan().n_context) {
      result.reason = StopReason::kContextFull;
      break;
    }
    const size_t before = timeline.tokens().size();
    const Result<size_t> n_rows = timeline.append(token, n_left(settings, result));
    if (!n_rows) return fail(n_rows.error());
    ++result.n_decode_tokens;
    if (*n_rows == 0) continue;
    ++result.n_decode_steps;
    result.decode_traffic_bytes += decode_traffic(engine, before, *n_rows);
  }
  timeline.finish();
  result.speculation = timeline.stats();
  result.decode_traffic_bytes += result.speculation.draft_traffic_bytes;
  sink.finish();
  // A character cut short may have become the end of a stop string only now.
  if (sink.stopped()) result.reason = StopReason::kStopString;
  result.decode_seconds = seconds_since(decode_start);
  result.decode_experts = expert_report(engine).since(experts_between);
  result.text = sink.take_text();
  return result;
}

}  // namespace godwit::engine
