// The decoder that the dense architectures share: attention and a gated feed-forward, five steps a
// layer. What differs between them is data: DenseTraits, and what the file holds (biases, fused
// projections, a tied output).
#pragma once

#include "model/config.h"
#include "model/weights.h"
#include "program/builder.h"

namespace godwit::model {

// Where a layer's norms lie: on the input of attention and feed-forward (attn_norm, ffn_norm), on
// what they add to the residual stream (post_attention_norm, post_ffw_norm), or both.
enum class NormPlacement : uint8_t { kBefore, kAfter, kBoth };

// Norms of queries and keys (attn_q_norm, attn_k_norm): each head by itself, or a row's heads
// together.
enum class HeadNorm : uint8_t { kNone, kEachHead, kWholeRow };

// One tensor for both parts of the gated feed-forward: ffn_up holds the gate's rows, then up's.
enum class GateTensor : uint8_t { kOwn, kInUp };

struct DenseTraits {
  program::RopePairs rope_pairs = program::RopePairs::kAdjacent;
  program::Activation activation = program::Activation::kSilu;
  NormPlacement norms = NormPlacement::kBefore;
  HeadNorm head_norm = HeadNorm::kNone;
  GateTensor gate = GateTensor::kOwn;
  double embedding_scale = 1.0;
  double residual_scale = 1.0;
  double attention_scale = 0.0;  // of q . k; 0: 1 / sqrt(head_dim)
  double logit_scale = 1.0;
  double attention_softcap = 0.0;  // 0: none
  double logit_softcap = 0.0;      // 0: none
  std::optional<program::PositionScale> query_scale = {};
  // Where the file does not name the layers with a window: every n-th attends to all positions;
  // 0: none does.
  uint32_t window_period = 0;
  std::optional<RopeConfig> window_rope = {};  // of the layers with a window, where it is another
  uint32_t rope_period = 0;                    // every n-th layer turns nothing; 0: all turn
};

void build_dense(const Config& config, const DenseTraits& traits, WeightFinder& weights,
                 program::ProgramBuilder& builder);

}  // namespace godwit::model
