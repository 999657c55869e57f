// Llama 1 to 3.x, SmolLM2, Mistral 7B and others that files call "llama": converters permute q and
// k so that RoPE turns adjacent dimensions; Llama 3's scaling arrives as rope_freqs.weight. A
// sliding window, where the file has one (Mistral 7B v0.1), holds for every layer.
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_llama(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_dense(config, {.rope_pairs = program::RopePairs::kAdjacent}, weights, builder);
}

}  // namespace godwit::model
