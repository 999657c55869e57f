// The memory of one sequence on the CPU: activations, KV, and the work areas of the threads. All
// of it is allocated when the context is made; running a token allocates nothing, but for the lists
// of experts that a cache hands out.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention.h"
#include "backend/cpu/delta_chunk.h"
#include "backend/cpu/expert_rows.h"
#include "backend/cpu/kernel_table.h"
#include "os/memory.h"
#include "program/program.h"

namespace godwit::cpu {

// [rows, width] f32, rows `stride` floats apart.
struct BufferView {
  float* data = nullptr;
  size_t width = 0;
  size_t stride = 0;

  [[nodiscard]] float* row(size_t i) const { return data + i * stride; }
};

// Where one step's input lies after the norm, and rounded to 8-bit planes; for `rows` rows.
struct InputArea {
  std::span<std::byte> normed;  // [rows, widest input] f32
  std::span<std::byte> q8_32;   // both planes as kQ8Block32
  std::span<std::byte> q8_256;  // both planes as kQ8Block256
};

// What the rows of a chunk left (delta_chunk.h).
struct DeltaLog {
  std::span<float> keys;         // [n_key_heads, head_dim, kDeltaChunk]
  std::span<float> changes;      // [n_heads, kDeltaChunk, head_dim]
  std::span<double> log_decays;  // [n_heads, kDeltaChunk]
};

// program::State of one layer, at every position from DeltaSpan::settled on.
struct DeltaState {
  // [taps - 1 + max_tentative_rows, channels], raw: those before the settled position, oldest
  // first, then the tentative ones.
  std::span<float> rows;
  std::span<float> matrix;     // [n_heads, head_dim of k, head_dim of v], before the settled chunk
  std::vector<DeltaLog> logs;  // of that chunk and those that tentative rows may reach

  [[nodiscard]] const DeltaLog& log(size_t chunk) const { return logs[chunk % logs.size()]; }
};

// Positions that the recurrent states can go on from: all in [settled, end].
struct DeltaSpan {
  size_t settled = 0;  // of the first row that may be taken back; the end where there is none
  size_t end = 0;
};

// One thread's work area for the routed experts of a layer.
struct ExpertArea {
  ExpertRows::Area groups;
  std::array<std::span<std::byte>, 3> gathered;  // by ActivationKind: kExpertRows rows of an input
  BufferView first;   // [kExpertRows, widest output]: the gate's products, or down's
  BufferView second;  // [kExpertRows, widest output]: up's
};

// One thread's work area for a key head and up to kDeltaChunk rows.
struct DeltaHeadArea {
  float* keys_queries;  // [2 kDeltaChunk, head_dim]
  float* values;        // [kDeltaChunk, its value heads, head_dim]
  float* dots;          // [2 kDeltaChunk, kDeltaChunk]
  float* scratch;       // delta_scratch_floats()
  float* betas;         // [kDeltaChunk]
  float* tried;         // [its value heads, head_dim, head_dim]: matrices that may be taken back

  static constexpr size_t floats(size_t head_dim, size_t n_values) {
    return kDeltaChunk * (2 * head_dim + n_values * head_dim + 2 * kDeltaChunk + 1) +
           delta_scratch_floats(head_dim) + n_values * head_dim * head_dim;
  }
  DeltaHeadArea(float* floats, size_t head_dim, size_t n_values)
      : keys_queries(floats),
        values(keys_queries + 2 * kDeltaChunk * head_dim),
        dots(values + kDeltaChunk * n_values * head_dim),
        scratch(dots + 2 * kDeltaChunk * kDeltaChunk),
        betas(scratch + delta_scratch_floats(head_dim)),
        tried(betas + kDeltaChunk) {}
};

// How the backend runs its contexts.
struct Execution {
  size_t n_threads = 1;
  size_t attention_block = 0;  // as AttentionArgs::block
};

class Context {
 public:
  [[nodiscard]] static backend::MemoryNeed need(const program::Program& program,
                                                const backend::ContextSettings& settings,
                                                const Execution& execution);
  [[nodiscard]] static Result<std::unique_ptr<Context>> create(
      const program::Program& program, const backend::ContextSettings& settings,
      const Execution& execution);
  [[nodiscard]] Status lock() { return arena_.lock(); }

  backend::ContextSettings settings;
  std::vector<BufferView> buffers;    // indexed by BufferId
  std::vector<KvCache> kvs;           // indexed by KvRef; keys already turned by RoPE
  std::vector<DeltaState> states;     // indexed by StateRef
  DeltaSpan span;                     // of the states, after the last run
  DeltaSpan span_before;              // and before it
  InputArea shared_input;             // max_rows rows, filled by all threads
  std::vector<InputArea> own_inputs;  // per thread, one row
  BufferView gate;                    // [max_rows, widest buffer]: gate, projections to be added
  std::vector<std::span<std::byte>> plane_sums;  // per thread: [2 * rows, its rows of a weight] f32
  BufferView turned_q;                           // [max_rows, widest buffer]: queries after RoPE
  std::vector<BufferView> angles;       // indexed by RopeRef: [max_rows, n_rot] cosines, sines
  std::span<std::byte> attention;       // work area of attention.h
  size_t attention_block = 0;           // as AttentionArgs::block
  std::vector<std::span<float>> heads;  // per thread: work area of one key head's delta rule

  std::vector<ExpertArea> experts;  // per thread; empty without experts
  BufferView expert_products;       // [max_rows, widest sum of slots x dim], by down

  // Of the last run.
  size_t n_rows = 0;
  std::vector<uint32_t> logit_rows;  // indices of the rows that want logits

 private:
  AlignedBuffer arena_;
};

}  // namespace godwit::cpu
