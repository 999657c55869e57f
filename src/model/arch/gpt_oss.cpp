// gpt-oss: attention with sinks and biases, every other layer within a window; experts with biases
// and a clamped gate. The model was trained with the ends of YaRN's ramp as they are
// ("truncate": false in its configuration), for which files have no key.
#include "model/arch/architectures.h"
#include "model/arch/hybrid.h"

namespace godwit::model {

void build_gpt_oss(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  Config exact = config;
  exact.rope.yarn_whole_ends = false;
  build_hybrid(exact,
               {.normed_heads = false,
                .biases_and_sinks = true,
                .activation = program::Activation::kSwigluClamped,
                .window_period = 2},
               weights, builder);
}

}  // namespace godwit::model
