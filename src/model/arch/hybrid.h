// The decoder that mixtures of experts and Qwen's hybrids share: attention or a Gated DeltaNet
// layer, then routed experts or a gated feed-forward. What differs between them is data:
// HybridTraits, and which layers the file names.
#pragma once

#include "model/config.h"
#include "model/weights.h"
#include "program/builder.h"

namespace godwit::model {

enum class FeedForward : uint8_t { kDense, kExperts, kExpertsAndShared };

// How files lay out the value heads of DeltaNet layers: the neighbours of a key head, the gates of
// a key head's heads together (ssm_ba); or each key head's first, each one's second, ..., the
// gates apart (ssm_beta, ssm_alpha).
enum class DeltaHeads : uint8_t { kNone, kNeighbours, kTiled };

struct HybridTraits {
  // With DeltaNet layers, the heads of attention have gates.
  DeltaHeads delta = DeltaHeads::kNone;
  FeedForward feed_forward = FeedForward::kExperts;
  std::string_view second_norm = "post_attention_norm.weight";
  bool normed_heads = true;
  // Every projection, the router and every expert add a bias, and every head has a sink.
  bool biases_and_sinks = false;
  program::Activation activation = program::Activation::kSilu;
  uint32_t window_period = 0;  // as DenseTraits has it
};

void build_hybrid(const Config& config, const HybridTraits& traits, WeightFinder& weights,
                  program::ProgramBuilder& builder);

}  // namespace godwit::model
