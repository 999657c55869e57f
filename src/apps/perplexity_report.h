// What `perplexity` prints: llama-perplexity's lines, so that scripts made for those read these,
// and one JSON object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/perplexity_statistics.h"
#include "apps/perplexity_windows.h"

namespace godwit::apps {

enum class PplOutput : int { kRunning = 0, kTable = 1 };

// After chunk `index` (from 0): "[1]4.1234," or a line of a table.
[[nodiscard]] std::string chunk_text(PplOutput output, size_t index, const Window& window,
                                     const PerplexitySum& sum);
// "Final estimate: PPL = 4.1234 +/- 0.01234"
[[nodiscard]] std::string final_text(const PerplexitySum& sum);

[[nodiscard]] std::string divergence_heading();
[[nodiscard]] std::string divergence_chunk_text(size_t index, const DivergenceSum& sum);
// The three blocks of statistics; nothing for fewer than 100 tokens (as upstream).
[[nodiscard]] std::string divergence_text(const DivergenceSum& sum);
[[nodiscard]] nlohmann::json divergence_json(const DivergenceSum& sum);

}  // namespace godwit::apps
