// Prompt to text: prefill, then sample, append and stream until something ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/expert_report.h"
#include "engine/session.h"
#include "engine/speculate.h"
#include "sampling/sampler.h"

namespace godwit::engine {

enum class StopReason : uint8_t { kEndOfText, kStopString, kMaxTokens, kContextFull, kCancelled };

struct GenerateSettings {
  sampling::SamplerSettings sampler;
  int64_t max_tokens = -1;         // -1: until something else ends it
  std::vector<std::string> stops;  // not part of the text
  bool ignore_end = false;         // sample on past end-of-text tokens
  bool show_special = false;       // control tokens as text
  size_t n_logprobs = 0;           // top alternatives to report per token; 0: none
  SpeculationSettings speculation;
};

struct TokenReport {
  TokenId token;
  float logprob = 0.0f;  // before sampling, over the whole vocabulary
  std::vector<sampling::TokenProbability> top;
};

struct GenerateCallbacks {
  // Whole characters as they become certain.
  std::function<void(std::string_view)> on_text;
  // (done, total) prompt tokens.
  std::function<void(size_t, size_t)> on_prompt;
  // Asked before each unit of work; true ends the generation.
  std::function<bool()> cancelled;
};

struct GenerateResult {
  std::string text;
  std::vector<TokenId> tokens;       // generated, without the token that ended the text
  std::vector<TokenReport> reports;  // one per token, where n_logprobs > 0
  StopReason reason = StopReason::kMaxTokens;
  size_t n_prompt = 0;
  size_t n_reused = 0;     // prompt tokens that did not run
  size_t n_from_tree = 0;  // those of them that came from the session's tree
  double prompt_seconds = 0;
  double decode_seconds = 0;
  size_t n_decode_steps = 0;          // backend calls within decode_seconds
  size_t n_decode_tokens = 0;         // whose logits those computed: more where drafts were right
  uint64_t decode_traffic_bytes = 0;  // by program/traffic.h, over those steps
  SpeculationStats speculation;
  ExpertReport prompt_experts;
  ExpertReport decode_experts;
};

[[nodiscard]] std::string_view stop_reason_name(StopReason reason);

// Errors: as Session::set_prompt. A generation that fills the context ends; it is not an error.
[[nodiscard]] Result<GenerateResult> generate(Session& session, std::span<const TokenId> prompt,
                                              const GenerateSettings& settings,
                                              const GenerateCallbacks& callbacks);

}  // namespace godwit::engine
