// Qwen3 MoE: the attention of Qwen3 and routed experts in every layer.
#include "model/arch/architectures.h"
#include "model/arch/hybrid.h"

namespace godwit::model {

void build_qwen3moe(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_hybrid(config, {.second_norm = "ffn_norm.weight"}, weights, builder);
}

}  // namespace godwit::model
