// Qwen3-Next: three Gated DeltaNet layers, then one of attention with gated heads and partial RoPE;
// routed experts beside a shared one in every layer. The first layer that predicts further
// tokens, where a file has any, is the head of Program::mtp.
#include "model/arch/architectures.h"
#include "model/arch/hybrid.h"

namespace godwit::model {

void build_qwen3next(const Config& config, WeightFinder& weights,
                     program::ProgramBuilder& builder) {
  build_hybrid(config,
               {.delta = DeltaHeads::kNeighbours, .feed_forward = FeedForward::kExpertsAndShared},
               weights, builder);
}

}  // namespace godwit::model
