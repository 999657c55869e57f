#include "apps/sampling_options.h"

#include <charconv>
#include <random>

#include "apps/flags.h"

namespace godwit::apps {
namespace {

Result<std::pair<TokenId, float>> parse_bias(const std::string& text) {
  TokenId token;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, token.value);
  float bias = 0;
  const bool signed_bias = rest != end && (*rest == '+' || *rest == '-');
  const char* const number = signed_bias && *rest == '+' ? rest + 1 : rest;
  const auto parsed = std::from_chars(number, end, bias);
  if (error != std::errc{} || !signed_bias || parsed.ec != std::errc{} || parsed.ptr != end) {
    return fail("logit bias '{}': expected a token id and a signed number, as 15043+1.5", text);
  }
  return std::pair{token, bias};
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  sampling::SamplerSettings& s = options.sampler;
  const auto add = [&](const std::string& flags, auto& value, const std::string& help) {
    return command.add_option(flags, value, help)->capture_default_str();
  };
  add_environment(add("-n,--predict,--n-predict", options.max_tokens,
                      "Tokens to generate; -1: until the model ends"),
                  "N_PREDICT");
  add("-s,--seed", options.seed, "Seed; -1: a new one each time");
  add("--temp,--temperature", s.temperature, "Temperature; 0: greedy");
  add("--top-k", s.top_k, "Keep the k likeliest; 0: off");
  add("--top-p", s.top_p, "Keep the likeliest that make up p; 1: off");
  add("--min-p", s.min_p, "Keep those at least this share of the likeliest; 0: off");
  add("--typical", s.typical_p, "Locally typical sampling; 1: off");
  add("--top-n-sigma,--top-nsigma", s.top_n_sigma, "Keep logits within n deviations; -1: off");
  add("--xtc-probability", s.xtc_probability, "Chance to exclude top choices; 0: off");
  add("--xtc-threshold", s.xtc_threshold, "What counts as a top choice");
  add("--dynatemp-range", s.dynatemp_range, "Dynamic temperature range; 0: off");
  add("--dynatemp-exp", s.dynatemp_exponent, "Dynamic temperature exponent");
  add("--repeat-penalty", s.repeat_penalty, "Divide logits of recent tokens; 1: off");
  add("--repeat-last-n", s.penalty_last_n, "Tokens that count as recent; -1: all");
  add("--presence-penalty", s.presence_penalty, "Subtract once per recent token; 0: off");
  add("--frequency-penalty", s.frequency_penalty, "Subtract per occurrence; 0: off");
  add("--dry-multiplier", s.dry_multiplier, "DRY repetition penalty; 0: off");
  add("--dry-base", s.dry_base, "DRY base");
  add("--dry-allowed-length", s.dry_allowed_length, "DRY: repetitions up to this length are free");
  add("--dry-penalty-last-n", s.dry_penalty_last_n, "DRY: tokens to look back; -1: all");
  add("--dry-sequence-breaker", s.dry_sequence_breakers, "DRY: texts that end a repetition");
  add("--samplers", s.order, "Samplers in order, separated by ';'");
  command.add_option("-l,--logit-bias", options.logit_bias, "Add to a token's logit: ID+1.5");
  command.add_flag("--ignore-eos", options.ignore_eos, "Generate past end-of-text tokens");
  command.add_option("-r,--reverse-prompt,--stop", options.stops, "Text that ends the answer");
}

Result<engine::GenerateSettings> generate_settings(const SamplingOptions& options) {
  engine::GenerateSettings settings{.sampler = options.sampler,
                                    .max_tokens = options.max_tokens,
                                    .stops = options.stops,
                                    .ignore_end = options.ignore_eos,
                                    .show_special = false,
                                    .n_logprobs = 0};
  settings.sampler.seed =
      options.seed >= 0 ? static_cast<uint64_t>(options.seed) : uint64_t{std::random_device{}()};
  for (const std::string& text : options.logit_bias) {
    const Result<std::pair<TokenId, float>> bias = parse_bias(text);
    if (!bias) return fail(bias.error());
    settings.sampler.logit_bias.push_back(*bias);
  }
  return settings;
}

}  // namespace godwit::apps
