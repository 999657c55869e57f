// The sampler chain: logits of one position to one token. Order and defaults are llama.cpp's
// (penalties, dry, top-n-sigma, top-k, typical-p, top-p, min-p, xtc, temperature). Random numbers
// are a function of (seed, position), so neither speculation nor scheduling can change a text.
// NaN logits count as minus infinity; where nothing is possible, the lowest id is the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace godwit::tokenizer {
class Tokenizer;
}

namespace godwit::sampling {

struct SamplerSettings {
  uint64_t seed = 0;
  float temperature = 0.8f;  // <= 0: greedy (where `order` has the temperature)
  float dynatemp_range = 0.0f;
  float dynatemp_exponent = 1.0f;
  int32_t top_k = 40;            // <= 0: off
  float top_p = 0.95f;           // >= 1: off
  float min_p = 0.05f;           // <= 0: off
  float typical_p = 1.0f;        // >= 1: off
  float top_n_sigma = -1.0f;     // < 0: off
  float xtc_probability = 0.0f;  // <= 0: off
  float xtc_threshold = 0.1f;
  float repeat_penalty = 1.0f;  // 1: off
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  int32_t penalty_last_n = 64;  // 0: off, -1: the whole context
  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = -1;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  std::vector<std::pair<TokenId, float>> logit_bias;
  // Names separated by ';', as llama.cpp's --samplers: any case, "top_k", "top-k" or "topk".
  std::string order = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";
  int32_t min_keep = 0;  // candidates that top_p, min_p, typ_p and xtc leave at least
};

struct TokenProbability {
  TokenId token;
  float logprob = 0.0f;  // natural logarithm, over the whole vocabulary, before any sampler
};

class Sampler {
 public:
  // Errors: an unknown sampler name (the nearest is suggested), a value out of range, DRY without
  // a vocabulary. `vocabulary` may be null; only DRY's sequence breakers need it, and only here.
  [[nodiscard]] static Result<Sampler> create(const SamplerSettings& settings,
                                              const tokenizer::Tokenizer* vocabulary);
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Chooses the token at `position`, given all tokens before it (newest last).
  [[nodiscard]] TokenId sample(std::span<const float> logits, std::span<const TokenId> history,
                               Position position);

 private:
  struct Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The token with the highest logit; the lowest id among equals.
[[nodiscard]] TokenId argmax(std::span<const float> logits);

// Log-probability of `token`, and of the `n_top` likeliest, of the untouched distribution.
[[nodiscard]] float logprob(std::span<const float> logits, TokenId token);
[[nodiscard]] std::vector<TokenProbability> top_logprobs(std::span<const float> logits,
                                                         size_t n_top);

}  // namespace godwit::sampling
