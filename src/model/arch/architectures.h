// One function per architecture: configuration and weights of a file to steps. Each remembers
// missing or ill-shaped weights in the finder's status instead of returning early, so that it
// reads as the forward pass.
#pragma once

#include "model/config.h"
#include "model/weights.h"
#include "program/builder.h"

namespace godwit::model {

void build_gemma(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_gemma2(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_gemma3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_gpt_oss(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_granite(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_llama(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_mistral3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_olmo2(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_phi3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_qwen2(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_qwen3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_qwen35(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_qwen35moe(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_qwen3moe(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_qwen3next(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);
void build_smollm3(const Config& config, WeightFinder& weights, program::ProgramBuilder& builder);

}  // namespace godwit::model
