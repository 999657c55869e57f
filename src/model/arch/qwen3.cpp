// Qwen3 (dense): as qwen2 without biases, each head of q and k normed before RoPE.
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_qwen3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_dense(config, {.rope_pairs = program::RopePairs::kHalves, .head_norm = HeadNorm::kEachHead},
              weights, builder);
}

}  // namespace godwit::model
