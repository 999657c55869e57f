// Qwen2 and Qwen2.5: as llama, with biases on q, k and v and RoPE over halves of a head.
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_qwen2(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_dense(config, {.rope_pairs = program::RopePairs::kHalves}, weights, builder);
}

}  // namespace godwit::model
