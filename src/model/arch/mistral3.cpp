// Mistral 3 and Ministral 3: as llama, with YaRN's mscale_all_dim and, where the file says so,
// queries scaled by position beyond the original context (Llama 4's attention temperature).
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_mistral3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  DenseTraits traits{.rope_pairs = program::RopePairs::kAdjacent,
                     .attention_scale = config.scales.attention};
  if (config.scales.temperature != 0.0) {
    traits.query_scale = {.beta = config.scales.temperature,
                          .length = config.rope.original_context};
  }
  build_dense(config, traits, weights, builder);
}

}  // namespace godwit::model
