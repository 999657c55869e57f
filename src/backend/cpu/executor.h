// One thread's walk through the steps of a call. All threads of the pool walk together; each step
// ends in a barrier. Rows of a weight are split over threads by tiles, so that no result depends on
// how many threads there are.
#pragma once

#include <span>

#include "backend/cpu/context.h"
#include "backend/cpu/expert_cache.h"
#include "backend/cpu/kernel_table.h"
#include "backend/cpu/packed_weights.h"
#include "backend/cpu/vector_ops.h"
#include "experts/route_replay.h"
#include "os/thread_pool.h"
#include "program/program.h"

namespace godwit::cpu {

// Limits that supports() asks for, so that a row's choice and a convolution need no allocation.
inline constexpr size_t kMaxUsedExperts = 256;
inline constexpr size_t kMaxTaps = 64;

// A trace in place of the routers.
struct Playback {
  const experts::RouteReplay& replay;
  std::span<const uint32_t> layers;  // of each router by weight id
  uint64_t first_token = 0;          // of the call, since the trace began
};

// What all threads of a call share.
struct Call {
  const program::Program& program;
  PackedWeights& weights;  // to read, but for the row areas
  ExpertCache* experts;    // null: all of them are in `weights`
  const VectorOps& ops;
  Isa isa;
  Planes planes;  // of activations in products with quantised weights
  ThreadPool& pool;
  Context& context;
  std::span<const program::Row> rows;
  const Playback* playback = nullptr;
};

// Runs steps [range.begin, range.end) as thread `thread` of call.pool. Called on every thread.
void walk_steps(const Call& call, program::StepRange range, size_t thread);

}  // namespace godwit::cpu
