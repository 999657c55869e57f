// Qwen3.5: the layers of Qwen3-Next over a gated feed-forward. Files lay the value heads out
// otherwise and keep the projections of their gates apart. Its RoPE sections are axes of an image:
// for text all of them are the position.
#include "model/arch/architectures.h"
#include "model/arch/hybrid.h"

namespace godwit::model {

void build_qwen35(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_hybrid(config, {.delta = DeltaHeads::kTiled, .feed_forward = FeedForward::kDense}, weights,
               builder);
}

}  // namespace godwit::model
