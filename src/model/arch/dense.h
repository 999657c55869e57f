// The decoder that llama and qwen2 share: pre-norm attention and a gated feed-forward, five steps
// a layer. What differs is data.
#pragma once

#include "model/config.h"
#include "model/weights.h"
#include "program/builder.h"

namespace godwit::model {

struct DenseTraits {
  program::RopePairs rope_pairs = program::RopePairs::kAdjacent;
};

void build_dense(const Config& config, const DenseTraits& traits, WeightFinder& weights,
                 program::ProgramBuilder& builder);

}  // namespace godwit::model
