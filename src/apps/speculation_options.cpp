#include "apps/speculation_options.h"

#include <algorithm>

namespace godwit::apps {

void add_speculation_options(CLI::App& command, SpeculationOptions& options) {
  command
      .add_option("--spec-type", options.type,
                  "ngram-simple: draft what followed the last tokens where they stood before, and "
                  "verify it in one call. The text is the same, only sooner. none: do not")
      ->check(CLI::IsMember(
          {"none", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}))
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
}

engine::SpeculationSettings speculation_settings(const SpeculationOptions& options) {
  return {.max_draft = options.type == "none" ? 0 : options.max_draft,
          .min_draft = options.min_draft,
          .pace = engine::DraftPace::kWherePays,
          .source = {}};
}

void make_room(const SpeculationOptions& options, engine::EngineSettings& settings) {
  settings.max_logit_rows =
      std::max(settings.max_logit_rows, speculation_settings(options).max_draft + 1);
}

}  // namespace godwit::apps
