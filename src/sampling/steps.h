// The samplers of the chain, one function and one file each; sampler.cpp names them in its table.
// A step narrows or re-weighs the candidates and leaves at least one. Steps that their settings
// switch off are not called.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"
#include "sampling/candidates.h"
#include "sampling/dry.h"
#include "sampling/sampler.h"

namespace godwit::sampling {

// One bit and one number per token of the vocabulary, all clear between uses.
struct TokenNotes {
  std::vector<bool> marked;
  std::vector<int32_t> number;
  std::vector<int32_t> ids;  // the marked ones

  // The number noted for `id`, 0 at first.
  int32_t& at(int32_t id);
  void clear();
};

struct StepInput {
  const SamplerSettings& settings;
  std::span<const TokenId> history;  // newest last; ids of the vocabulary only
  Position position;
  const SequenceBreakers& breakers;
  TokenNotes& notes;
};

void apply_penalties(Candidates& candidates, const StepInput& in);
void apply_dry(Candidates& candidates, const StepInput& in);
void apply_top_n_sigma(Candidates& candidates, const StepInput& in);
void apply_top_k(Candidates& candidates, const StepInput& in);
void apply_typical_p(Candidates& candidates, const StepInput& in);
void apply_top_p(Candidates& candidates, const StepInput& in);
void apply_min_p(Candidates& candidates, const StepInput& in);
void apply_xtc(Candidates& candidates, const StepInput& in);
void apply_temperature(Candidates& candidates, const StepInput& in);

}  // namespace godwit::sampling
