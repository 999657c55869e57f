#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "sampling/candidates.h"
#include "sampling/steps.h"
#include "tokenizer/tokenizer.h"

namespace godwit::sampling {
namespace {

// What a step can do to the likeliest token; decides whether greedy choice may skip the chain.
enum class Effect : uint8_t { kKeepsBest, kChangesLogits, kMayDropBest };

using S = SamplerSettings;

bool changes_by_penalties(const S& s) {
  const bool neutral =
      s.repeat_penalty == 1.0f && s.frequency_penalty == 0.0f && s.presence_penalty == 0.0f;
  return s.penalty_last_n != 0 && !neutral;
}

bool changes_by_dry(const S& s) {
  return s.dry_multiplier != 0.0f && s.dry_base >= 1.0f && s.dry_penalty_last_n != 0;
}

struct StepRow {
  std::string_view name;
  std::array<std::string_view, 2> aliases;  // beside the spellings that same_name() allows
  Effect effect;
  bool (*is_on)(const SamplerSettings& settings);
  void (*apply)(Candidates& candidates, const StepInput& in);
};

constexpr std::array kSteps = {
    StepRow{"penalties", {}, Effect::kChangesLogits, changes_by_penalties, apply_penalties},
    StepRow{"dry", {}, Effect::kChangesLogits, changes_by_dry, apply_dry},
    StepRow{"top_n_sigma",
            {},
            Effect::kKeepsBest,
            [](const S& s) { return s.top_n_sigma > 0.0f; },
            apply_top_n_sigma},
    StepRow{"top_k", {}, Effect::kKeepsBest, [](const S& s) { return s.top_k > 0; }, apply_top_k},
    StepRow{"typ_p",
            {"typ", "typical_p"},
            Effect::kMayDropBest,
            [](const S& s) { return s.typical_p < 1.0f; },
            apply_typical_p},
    StepRow{"top_p",
            {"nucleus"},
            Effect::kKeepsBest,
            [](const S& s) { return s.top_p < 1.0f; },
            apply_top_p},
    StepRow{
        "min_p", {}, Effect::kKeepsBest, [](const S& s) { return s.min_p > 0.0f; }, apply_min_p},
    StepRow{"xtc",
            {},
            Effect::kMayDropBest,
            [](const S& s) { return s.xtc_probability > 0.0f && s.xtc_threshold <= 0.5f; },
            apply_xtc},
    StepRow{"temperature",
            {"temp"},
            Effect::kKeepsBest,
            [](const S&) { return true; },
            apply_temperature},
};

// "Top-K", "top_k" and "topk" are one name.
std::string plain_name(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '_' || c == '-' || c == ' ' || c == '\t') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return plain;
}

const StepRow* find_step(std::string_view name) {
  const std::string plain = plain_name(name);
  for (const StepRow& row : kSteps) {
    if (plain_name(row.name) == plain) return &row;
    for (const std::string_view alias : row.aliases) {
      if (!alias.empty() && plain_name(alias) == plain) return &row;
    }
  }
  return nullptr;
}

// Levenshtein distance; names are short, so the quadratic table is small.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string_view nearest_name(std::string_view name) {
  const std::string plain = plain_name(name.substr(0, 64));
  const auto distance = [&](const StepRow& row) {
    return edit_distance(plain, plain_name(row.name));
  };
  return std::ranges::min_element(kSteps, {}, distance)->name;
}

// The steps that `order` names and the settings switch on.
Result<std::vector<const StepRow*>> parse_order(const SamplerSettings& settings) {
  std::vector<const StepRow*> steps;
  std::string_view rest = settings.order;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (plain_name(name).empty()) continue;
    const StepRow* const row = find_step(name);
    if (row == nullptr) {
      return fail("sampler: unknown name '{}' in the order; did you mean '{}'?", name.substr(0, 64),
                  nearest_name(name));
    }
    if (row->is_on(settings)) steps.push_back(row);
  }
  return steps;
}

struct NamedValue {
  std::string_view name;
  float value;
};

Status check_values(const SamplerSettings& s) {
  const std::array<NamedValue, 13> values = {{{"temperature", s.temperature},
                                              {"dynatemp_range", s.dynatemp_range},
                                              {"dynatemp_exponent", s.dynatemp_exponent},
                                              {"top_p", s.top_p},
                                              {"min_p", s.min_p},
                                              {"typical_p", s.typical_p},
                                              {"top_n_sigma", s.top_n_sigma},
                                              {"xtc_probability", s.xtc_probability},
                                              {"xtc_threshold", s.xtc_threshold},
                                              {"frequency_penalty", s.frequency_penalty},
                                              {"presence_penalty", s.presence_penalty},
                                              {"dry_multiplier", s.dry_multiplier},
                                              {"dry_base", s.dry_base}}};
  for (const NamedValue& v : values) {
    if (!std::isfinite(v.value))
      return fail("sampler: {} is {}; expected a number", v.name, v.value);
  }
  if (!(s.repeat_penalty > 0.0f) || !std::isfinite(s.repeat_penalty) ||
      !std::isfinite(1.0f / s.repeat_penalty)) {
    return fail("sampler: repeat_penalty is {}; expected more than 0", s.repeat_penalty);
  }
  if (s.min_keep < 0) return fail("sampler: min_keep is {}; expected 0 or more", s.min_keep);
  if (s.dry_allowed_length < 0) {
    return fail("sampler: dry_allowed_length is {}; expected 0 or more", s.dry_allowed_length);
  }
  return {};
}

Status check_bias(const SamplerSettings& s, const tokenizer::Tokenizer* vocabulary) {
  const int32_t size =
      vocabulary != nullptr ? vocabulary->size() : std::numeric_limits<int32_t>::max();
  for (const auto& [token, bias] : s.logit_bias) {
    if (token.value < 0 || token.value >= size) {
      return fail("sampler: logit_bias names token {}; expected 0 to {}", token.value, size - 1);
    }
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return fail("sampler: logit_bias of token {} is {}; expected a number or -inf", token.value,
                  bias);
    }
  }
  return {};
}

TokenTexts texts_of(const tokenizer::Tokenizer& vocabulary) {
  return {.size = vocabulary.size(),
          .bytes = [&vocabulary](TokenId id) { return vocabulary.bytes(id); },
          .encode =
              [&vocabulary](std::string_view text) {
                return vocabulary.encode(text, tokenizer::Specials::kText,
                                         tokenizer::AddBos::kNever);
              }};
}

// Whether the chain's answer is always the likeliest token of the untouched logits.
bool is_plain_argmax(const SamplerSettings& s, std::span<const StepRow* const> steps) {
  if (s.temperature > 0.0f || s.dynatemp_range > 0.0f || !s.logit_bias.empty()) return false;
  for (const StepRow* const row : steps) {
    if (row->apply == apply_temperature) return true;
    if (row->effect != Effect::kKeepsBest) return false;
  }
  return false;
}

// Inverse of the cumulative distribution at `unit` in [0, 1).
TokenId draw(Candidates& candidates, double unit) {
  const std::span<const Candidate> items = candidates.items();
  if (items.size() == 1 || candidates.max_logit() == -std::numeric_limits<float>::infinity()) {
    return TokenId{std::ranges::min_element(items, {}, &Candidate::id)->id};
  }
  const Candidates::Weights weights = candidates.weights();
  const double target = unit * weights.sum;
  double sum = 0.0;
  size_t last_possible = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (weights.values[i] > 0.0f) last_possible = i;
    sum += static_cast<double>(weights.values[i]);
    if (sum > target) return TokenId{items[i].id};
  }
  return TokenId{items[last_possible].id};  // only where rounding made target reach the sum
}

}  // namespace

struct Sampler::Impl {
  SamplerSettings settings;
  std::vector<const StepRow*> steps;
  bool plain_argmax = false;
  bool reads_history = false;
  SequenceBreakers breakers;

  // Reused from position to position.
  Candidates candidates;
  TokenNotes notes;
  std::vector<TokenId> known_history;

  // Without tokens that the vocabulary does not have; they cannot be penalised.
  std::span<const TokenId> known(std::span<const TokenId> history, size_t n_vocab) {
    const auto is_known = [&](TokenId t) {
      return t.value >= 0 && static_cast<size_t>(t.value) < n_vocab;
    };
    if (std::ranges::all_of(history, is_known)) return history;
    known_history.clear();
    std::ranges::copy_if(history, std::back_inserter(known_history), is_known);
    return known_history;
  }

  void apply_bias(std::span<const float> logits) {
    candidates.change_by_id([&](std::span<Candidate> items) {
      for (const auto& [token, bias] : settings.logit_bias) {
        const auto id = static_cast<size_t>(token.value);
        if (id >= logits.size()) continue;
        const float sum = items[id].logit + bias;
        items[id].logit = std::isnan(sum) ? -std::numeric_limits<float>::infinity() : sum;
      }
    });
  }
};

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

Result<Sampler> Sampler::create(const SamplerSettings& settings,
                                const tokenizer::Tokenizer* vocabulary) {
  if (Status ok = check_values(settings); !ok) return fail(std::move(ok.error()));
  if (Status ok = check_bias(settings, vocabulary); !ok) return fail(std::move(ok.error()));
  Result<std::vector<const StepRow*>> steps = parse_order(settings);
  if (!steps) return fail(std::move(steps.error()));

  auto impl = std::make_unique<Impl>();
  impl->settings = settings;
  impl->steps = std::move(*steps);
  impl->plain_argmax = is_plain_argmax(settings, impl->steps);
  const auto uses = [&](auto apply) {
    return std::ranges::any_of(impl->steps, [&](const StepRow* r) { return r->apply == apply; });
  };
  impl->reads_history = uses(apply_penalties) || uses(apply_dry);
  if (uses(apply_dry) && !settings.dry_sequence_breakers.empty()) {
    if (vocabulary == nullptr) {
      return fail("sampler: dry_multiplier is {}, but DRY's sequence breakers need a vocabulary",
                  settings.dry_multiplier);
    }
    impl->breakers = SequenceBreakers(settings.dry_sequence_breakers, texts_of(*vocabulary));
  }
  return Sampler(std::move(impl));
}

TokenId Sampler::sample(std::span<const float> logits, std::span<const TokenId> history,
                        Position position) {
  check(!logits.empty(), "sampling from no logits");
  Impl& impl = *impl_;
  if (impl.plain_argmax) return argmax(logits);
  if (impl.reads_history) {
    history = impl.known(history, logits.size());
    impl.notes.marked.resize(logits.size(), false);
    impl.notes.number.resize(logits.size(), 0);
    impl.notes.ids.reserve(logits.size());
  }
  impl.candidates.fill(logits);
  if (!impl.settings.logit_bias.empty()) impl.apply_bias(logits);
  const StepInput in{.settings = impl.settings,
                     .history = history,
                     .position = position,
                     .breakers = impl.breakers,
                     .notes = impl.notes};
  for (const StepRow* const row : impl.steps) row->apply(impl.candidates, in);
  return draw(impl.candidates,
              random_unit(impl.settings.seed, static_cast<uint64_t>(position.value)));
}

}  // namespace godwit::sampling
