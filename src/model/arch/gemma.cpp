// Gemma 1 to 3. All scale the embedding by sqrt(dim) and gate with GELU; converters have added the
// 1 that the norms' weights lack. Gemma 2 norms what it adds as well, caps attention and logits,
// and gives every second layer a window; Gemma 3 norms q and k instead of capping, and gives five
// layers of six a window and a RoPE of their own.
#include <cmath>

#include "model/arch/architectures.h"
#include "model/arch/dense.h"

namespace godwit::model {
namespace {

DenseTraits gemma_traits(const Config& config) {
  return {.rope_pairs = program::RopePairs::kHalves,
          .activation = program::Activation::kGelu,
          .embedding_scale = std::sqrt(static_cast<double>(config.dim))};
}

// The 27B models divide by the root of dim / n_heads, which is not their head_dim; no key of the
// file says so, but their number of layers does.
double attention_scale(const Config& config, uint32_t layers_of_27b) {
  if (config.n_layers != layers_of_27b) return 0.0;
  return 1.0 / std::sqrt(static_cast<double>(config.dim) / config.n_heads);
}

}  // namespace

void build_gemma(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  build_dense(config, gemma_traits(config), weights, builder);
}

void build_gemma2(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  Config own = config;
  if (own.window.length == 0) own.window.length = 4096;
  DenseTraits traits = gemma_traits(own);
  traits.norms = NormPlacement::kBoth;
  traits.attention_scale = attention_scale(own, 46);
  traits.attention_softcap = own.attention_softcap.value_or(50.0);
  traits.logit_softcap = own.logit_softcap.value_or(30.0);
  traits.window_period = 2;
  build_dense(own, traits, weights, builder);
}

void build_gemma3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder) {
  DenseTraits traits = gemma_traits(config);
  traits.norms = NormPlacement::kBoth;
  traits.head_norm = HeadNorm::kEachHead;
  traits.attention_scale = attention_scale(config, 62);
  traits.logit_softcap = config.logit_softcap.value_or(0.0);
  traits.window_period = 6;
  // Layers with a window know nothing of the context extension.
  traits.window_rope =
      RopeConfig{.base = config.window.rope_base != 0.0 ? config.window.rope_base : 10000.0,
                 .n_rot = config.rope.n_rot};
  build_dense(config, traits, weights, builder);
}

}  // namespace godwit::model
