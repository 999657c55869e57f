// OLMo 2 and 3: no norm on the input of attention and feed-forward but one on what they add; q and
// k normed over all heads of a row. OLMo 3 gives three layers of four a window, and those know
// nothing of the context extension.
#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {

void build_olmo2(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  const double base = config.window.rope_base != 0.0 ? config.window.rope_base : config.rope.base;
  build_dense(config,
              {.rope_pairs = program::RopePairs::kHalves,
               .norms = NormPlacement::kAfter,
               .head_norm = HeadNorm::kWholeRow,
               .window_period = 4,
               .window_rope = RopeConfig{.base = base, .n_rot = config.rope.n_rot}},
              weights, builder);
}

}  // namespace godwit::model
