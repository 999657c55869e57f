// SmolLM3: as llama, but every fourth layer turns nothing by position ("NoPE").
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_smollm3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_dense(config, {.rope_pairs = program::RopePairs::kAdjacent, .rope_period = 4}, weights,
              builder);
}

}  // namespace godwit::model
