#include "apps/sampling_options.h"

#include <charconv>
#include <random>

#include "apps/tokenize.h"

namespace godwit::apps {
void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  sampling::SamplerSettings& s = options.sampler;
  const auto add = [&](const std::string& flags, auto& value, const std::string& help) {
    return command.add_option(flags, value, help)->capture_default_str();
  };
  add("-n,--predict,--n-predict", options.max_tokens,
      "Tokens to generate; -1: until the model ends");
  add("-s,--seed", options.seed, "Seed; -1: a new one each time");
  add("--temp,--temperature", s.temperature, "Temperature; 0: greedy");
  add("--top-k", s.top_k, "Keep the k likeliest; 0: off");
  add("--top-p", s.top_p, "Keep the likeliest that make up p; 1: off");
  add("--min-p", s.min_p, "Keep those at least this share of the likeliest; 0: off");
  add("--typical,--typical-p", s.typical_p, "Locally typical sampling; 1: off");
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
  command
      .add_option("--dry-sequence-breaker", s.dry_sequence_breakers,
                  "DRY: a text that ends a repetition, in place of \\n : \" *; none: no text does")
      ->type_name("TEXT");
  add("--samplers", s.order, "Samplers in order, separated by ';'");
  command.add_option("-l,--logit-bias", options.logit_bias, "Add to a token's logit: ID+1.5");
  command.add_flag("--ignore-eos", options.ignore_eos, "Generate past end-of-text tokens");
  command.add_flag("--special", options.show_special, "(-sp) Show control tokens as text");
  command.add_option("-r,--reverse-prompt,--stop", options.stops, "Text that ends the answer");
  command.add_flag("-e,--escape,!--no-escape", options.escape,
                   "Replace \\n, \\t, \\xHH and their like in -p, -sys, -r (the default)");
}

Result<std::pair<TokenId, float>> parse_logit_bias(std::string_view text) {
  TokenId token;
  const char* const end = text.data() + text.size();
  const auto [sign, token_error] = std::from_chars(text.data(), end, token.value);
  const bool has_sign = sign != end && (*sign == '+' || *sign == '-');
  float bias = 0;
  std::from_chars_result parsed{sign, std::errc::invalid_argument};
  // One sign: from_chars would take "15043+-1" as -1.
  if (has_sign && sign + 1 != end && sign[1] != '-') parsed = std::from_chars(sign + 1, end, bias);
  if (token_error != std::errc{} || token.value < 0 || parsed.ec != std::errc{} ||
      parsed.ptr != end) {
    return fail("logit bias '{}': expected a token id and a signed number, as 15043+1.5", text);
  }
  return std::pair{token, *sign == '-' ? -bias : bias};
}

Result<engine::GenerateSettings> generate_settings(const SamplingOptions& options) {
  engine::GenerateSettings settings{.sampler = options.sampler,
                                    .max_tokens = options.max_tokens,
                                    .stops = {},
                                    .ignore_end = options.ignore_eos,
                                    .show_special = options.show_special,
                                    .n_logprobs = 0,
                                    .speculation = {}};
  settings.sampler.seed =
      options.seed >= 0 ? static_cast<uint64_t>(options.seed) : uint64_t{std::random_device{}()};
  for (const std::string& text : options.logit_bias) {
    const Result<std::pair<TokenId, float>> bias = parse_logit_bias(text);
    if (!bias) return fail(bias.error());
    settings.sampler.logit_bias.push_back(*bias);
  }
  for (const std::string& stop : options.stops) {
    settings.stops.push_back(flag_text(options, stop));
  }
  std::vector<std::string>& breakers = settings.sampler.dry_sequence_breakers;
  if (breakers == std::vector<std::string>{"none"}) breakers.clear();
  for (std::string& text : breakers) text = flag_text(options, text);

  // Only the vocabulary can judge sequence breakers: left out here, tried again by the engine.
  sampling::SamplerSettings trial = settings.sampler;
  trial.dry_sequence_breakers.clear();
  if (const auto tried = sampling::Sampler::create(trial, nullptr); !tried) {
    return fail(tried.error());
  }
  return settings;
}

std::string flag_text(const SamplingOptions& options, const std::string& text) {
  return options.escape ? without_escapes(text) : text;
}

}  // namespace godwit::apps
