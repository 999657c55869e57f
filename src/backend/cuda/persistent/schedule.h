// Turns a Program into the table that the persistent kernel walks: phases, who does which rows and
// positions, where activations lie and which tag each version of them carries, and how a CTA's
// shared memory is divided. Pure host arithmetic: knows shapes, no pointers and no card.
// schedule_check.h proves what comes out; executor.cpp adds the pointers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/persistent/phase.h"
#include "base/result.h"
#include "base/tensor_type.h"
#include "program/program.h"

namespace godwit::cuda::persistent {

struct Geometry {
  uint32_t n_ctas = 0;        // one per multiprocessor
  uint32_t shared_bytes = 0;  // dynamic shared memory that a CTA may ask for
  uint64_t keep_bytes = 0;    // weights that the L2 is asked to keep from token to token
};

// What a phase is made of, by the Program's own indices.
struct PhasePlan {
  std::string label;
  Phase phase;  // pointers still empty
  // Rows of the virtual matrix: one after the other, or for Finish::kGate 4 of the first, then the
  // same 4 of the second.
  std::vector<program::WeightRef> matrices;
  std::vector<std::optional<program::WeightRef>> biases;  // of each matrix; empty: none has one
  std::optional<program::WeightRef> norm;                 // attention: of q
  std::optional<program::WeightRef> k_norm;
  std::optional<program::KvRef> kv;
  std::optional<program::RopeRef> rope;
  program::BufferId out;
};

struct EmbedPlan {
  program::WeightRef table;
  float scale = 1.0f;
  EdgeShape out;  // version 0 of the residual
};

struct Schedule {
  uint32_t n_ctas = 0;
  uint32_t head_dim = 0;
  TensorType weight_type = TensorType::kBF16;
  SharedPlan shared;
  EmbedPlan embed;
  std::vector<Shape> shapes;
  std::vector<PhasePlan> phases;
  uint32_t n_words = 0;  // of activations

  [[nodiscard]] const Shape& shape_of(const PhasePlan& plan) const {
    return shapes[plan.phase.shape];
  }
};

// Errors say which step the kernel does not run, and why: the reason to fall back.
[[nodiscard]] Result<Schedule> make_schedule(const program::Program& program,
                                             const Geometry& geometry);

}  // namespace godwit::cuda::persistent
