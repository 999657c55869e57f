// Qwen3.5 MoE: Qwen3.5 with the experts of Qwen3-Next.
#include "model/arch/architectures.h"
#include "model/arch/hybrid.h"

namespace godwit::model {

void build_qwen35moe(const Config& config, WeightFinder& weights,
                     program::ProgramBuilder& builder) {
  build_hybrid(config,
               {.delta = DeltaHeads::kTiled, .feed_forward = FeedForward::kExpertsAndShared},
               weights, builder);
}

}  // namespace godwit::model
