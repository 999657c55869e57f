// The decoder that Qwen's mixtures of experts share: attention with normed heads, or three Gated
// DeltaNet layers for every one of attention, and routed experts in every layer.
#pragma once

#include "model/config.h"
#include "model/weights.h"
#include "program/builder.h"

namespace godwit::model {

struct HybridTraits {
  // With DeltaNet layers, gated attention and a shared expert.
  bool delta_net = false;
};

void build_hybrid(const Config& config, const HybridTraits& traits, WeightFinder& weights,
                  program::ProgramBuilder& builder);

}  // namespace godwit::model
