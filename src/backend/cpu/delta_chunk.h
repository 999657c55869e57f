// The gated delta rule in chunks of positions (WY form; Yang et al., "Parallelizing Linear
// Transformers with the Delta Rule", and "Gated Delta Networks", 2024). A chunk begins at every
// absolute multiple of kDeltaChunk. Within it a head's matrix S stays as it was before the chunk;
// what rows changed is kept beside it, key by key: with G_t the sum of the log decays of the
// chunk's rows up to t,
//   d_t = beta_t (v_t - e^G_t S k_t - sum_{i<t} e^(G_t - G_i) (k_t k_i) d_i)
//   o_t = e^G_t S q_t + sum_{i<=t} e^(G_t - G_i) (q_t k_i) d_i
// and after its last row all of it goes into the matrix: S <- e^G S + sum_i e^(G - G_i) k_i d_i^T.
// This is the definition for every row, whether it comes alone or with others: the products with S
// of many rows are one matrix product, those of a row two mat-vecs, in the same order of additions.
// So results do not depend on grouping, and one row reads a matrix without writing it. Nor does it
// take anything to forget the last rows of a chunk: the matrix does not know them yet.
// The walker owns the memory (context.h) and gives heads to threads; nothing here knows steps.
#pragma once

#include <cstddef>

#include "backend/cpu/vector_table.h"

namespace godwit::cpu {

// Rows of a chunk. With more of them a row reads more changes, and saved states grow; with fewer
// the matrices are rewritten more often (docs/DECISIONS.md).
inline constexpr size_t kDeltaChunk = 16;

// Consecutive rows of one chunk, of one key head with keys of d numbers.
struct DeltaRows {
  const float* keys_queries;  // [2 n, d]: the rows' keys, then their queries, of unit length
  const float* dots;          // [2 n, kDeltaChunk], their products with the chunk's keys
  size_t slot = 0;            // of the first row in its chunk
  size_t n = 0;               // slot + n <= kDeltaChunk
  size_t d = 0;
};

// Joins the rows' keys to those of the chunk (keys: [d, kDeltaChunk]) and fills dots (rows.dots is
// not looked at).
void join_keys(const VectorOps& ops, const DeltaRows& rows, float* keys, float* dots);

// What a value head has of its rows.
struct DeltaInputs {
  const float* v;  // [n, d]
  size_t v_stride = 0;
  const double* log_decays;  // [n]
  const float* betas;        // [n]
};

// A value head's state: before the chunk, and of the chunk so far.
struct DeltaHead {
  const float* keys;   // [d, kDeltaChunk], of its key head, joined already
  float* matrix;       // [d of keys, d of values]
  float* changes;      // [kDeltaChunk, d]
  double* log_decays;  // [kDeltaChunk], summed from the chunk's beginning
};

// Floats of scratch for walk_delta_rows().
constexpr size_t delta_scratch_floats(size_t d) {
  return 2 * kDeltaChunk * d + d * kDeltaChunk + 4 * kDeltaChunk;
}

// out[r] = o of row r, not yet divided by sqrt(d): [n, d], rows out_stride floats apart.
void walk_delta_rows(const VectorOps& ops, const DeltaRows& rows, const DeltaInputs& in,
                     const DeltaHead& head, float* scratch, float* out, size_t out_stride);

// Brings a whole chunk into head.matrix; the chunk stays as it is. scratch as above.
void fold_delta_chunk(const VectorOps& ops, size_t d, const DeltaHead& head, float* scratch);

}  // namespace godwit::cpu
