// Phi-3, Phi-3.5, Phi-4: fused q/k/v and gate/up, LongRoPE with factors for short and for long
// contexts, partial RoPE (Phi-4-mini). A window, where the file has one, holds for every layer.
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_phi3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_dense(config, {.rope_pairs = program::RopePairs::kHalves, .gate = GateTensor::kInUp},
              weights, builder);
}

}  // namespace godwit::model
