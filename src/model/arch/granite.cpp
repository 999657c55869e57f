// IBM Granite 3.x (dense): as llama, with factors for the embedding, the residual stream, attention
// and the logits.
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_granite(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  const auto or_one = [](double scale) { return scale != 0.0 ? scale : 1.0; };
  build_dense(config,
              {.rope_pairs = program::RopePairs::kAdjacent,
               .embedding_scale = or_one(config.scales.embedding),
               .residual_scale = or_one(config.scales.residual),
               .attention_scale = config.scales.attention,
               .logit_scale = 1.0 / or_one(config.scales.logits)},
              weights, builder);
}

}  // namespace godwit::model
