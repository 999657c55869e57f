#include "apps/speculation_options.h"

#include <algorithm>

namespace godwit::apps {

void add_speculation_options(CLI::App& command, SpeculationOptions& options) {
  command
      .add_option("--spec-type", options.type,
                  "ngram-simple: draft what followed the last tokens where they stood before, and "
                  "verify it in one call. draft-mtp: draft by the head that the model has for "
                  "further tokens. The text is the same, only sooner. none: do not")
      ->check(CLI::IsMember({"none", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod",
                             "ngram-cache", "draft-mtp", "mtp"}))
      ->capture_default_str();
  command
      .add_option("--spec-draft-n-max,--draft-max,--draft,--draft-n", options.max_draft,
                  "Tokens to draft at most; fewer where that pays more")
      ->check(CLI::Range(size_t{0}, engine::DraftPolicy::kMaxDraft))
      ->capture_default_str();
  command
      .add_option("--spec-draft-n-min,--draft-min,--draft-n-min", options.min_draft,
                  "Shorter drafts are not verified")
      ->check(CLI::Range(size_t{0}, engine::DraftPolicy::kMaxDraft))
      ->capture_default_str();
  command
      .add_option("--spec-draft-p-min,--draft-p-min", options.min_probability,
                  "draft-mtp: a draft ends before a token that its head gives less")
      ->check(CLI::Range(0.0f, 1.0f))
      ->capture_default_str();
}

namespace {

bool by_own_head(const SpeculationOptions& options) {
  return options.type == "draft-mtp" || options.type == "mtp";
}

}  // namespace

engine::SpeculationSettings speculation_settings(const SpeculationOptions& options) {
  return {.max_draft = options.type == "none" ? 0 : options.max_draft,
          .min_draft = options.min_draft,
          .pace = engine::DraftPace::kWherePays,
          .drafter = by_own_head(options) ? engine::Drafter::kOwnHead : engine::Drafter::kLookup,
          .min_probability = options.min_probability};
}

void make_room(const SpeculationOptions& options, engine::EngineSettings& settings) {
  const size_t max_draft = speculation_settings(options).max_draft;
  settings.max_logit_rows = std::max(settings.max_logit_rows, max_draft + 1);
  settings.max_tentative_rows = max_draft;
  settings.with_mtp = by_own_head(options);
}

}  // namespace godwit::apps
