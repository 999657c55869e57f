#include "backend/cpu/delta_chunk.h"

#include <cmath>

namespace godwit::cpu {
namespace {

// out[i] = e^(G - G_i) for i < n, at most 1.
void relative_decays(const VectorOps& ops, double now, const double* log_decays, size_t n,
                     float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(now - log_decays[i]);
  ops.exp(out, out, n);
}

float decay_of(double log_decay) { return static_cast<float>(std::exp(log_decay)); }

}  // namespace

void join_keys(const VectorOps& ops, const DeltaRows& rows, float* keys, float* dots) {
  for (size_t r = 0; r < rows.n; ++r) {
    const float* const key = rows.keys_queries + r * rows.d;
    for (size_t c = 0; c < rows.d; ++c) keys[c * kDeltaChunk + rows.slot + r] = key[c];
  }
  // Of later keys, or those of the chunk before, the products are not looked at.
  ops.row_product({.x = rows.keys_queries,
                   .x_stride = rows.d,
                   .m = keys,
                   .m_stride = kDeltaChunk,
                   .y = dots,
                   .y_stride = kDeltaChunk,
                   .n_rows = 2 * rows.n,
                   .n_inner = rows.d,
                   .n_cols = rows.slot + rows.n,
                   .keep = 0.0f});
}

void walk_delta_rows(const VectorOps& ops, const DeltaRows& rows, const DeltaInputs& in,
                     const DeltaHead& head, float* scratch, float* out, size_t out_stride) {
  const size_t d = rows.d;
  float* const products = scratch;  // [2 n, d]: S k of each row, then S q
  float* const decays = products + 2 * kDeltaChunk * d;
  float* const key_weights = decays + kDeltaChunk;
  float* const query_weights = key_weights + kDeltaChunk;
  ops.row_product({.x = rows.keys_queries,
                   .x_stride = d,
                   .m = head.matrix,
                   .m_stride = d,
                   .y = products,
                   .y_stride = d,
                   .n_rows = 2 * rows.n,
                   .n_inner = d,
                   .n_cols = d,
                   .keep = 0.0f});
  for (size_t r = 0; r < rows.n; ++r) {
    const size_t slot = rows.slot + r;
    const double before = slot > 0 ? head.log_decays[slot - 1] : 0.0;
    const double now = before + in.log_decays[r];
    head.log_decays[slot] = now;
    relative_decays(ops, now, head.log_decays, slot + 1, decays);
    const float* const key_dots = rows.dots + r * kDeltaChunk;
    const float* const query_dots = rows.dots + (rows.n + r) * kDeltaChunk;
    for (size_t i = 0; i <= slot; ++i) {
      key_weights[i] = decays[i] * key_dots[i];
      query_weights[i] = decays[i] * query_dots[i];
    }
    ops.delta_row({.predicted = products + r * d,
                   .read = products + (rows.n + r) * d,
                   .key_weights = key_weights,
                   .query_weights = query_weights,
                   .v = in.v + r * in.v_stride,
                   .slot = slot,
                   .n = d,
                   .decay = decay_of(now),
                   .beta = in.betas[r]},
                  head.changes, out + r * out_stride);
  }
}

void fold_delta_chunk(const VectorOps& ops, size_t d, const DeltaHead& head, float* scratch) {
  float* const weighted_keys = scratch;  // [d, kDeltaChunk]
  float* const decays = weighted_keys + d * kDeltaChunk;
  const double total = head.log_decays[kDeltaChunk - 1];
  relative_decays(ops, total, head.log_decays, kDeltaChunk, decays);
  for (size_t c = 0; c < d; ++c) {
    for (size_t i = 0; i < kDeltaChunk; ++i) {
      weighted_keys[c * kDeltaChunk + i] = head.keys[c * kDeltaChunk + i] * decays[i];
    }
  }
  ops.add_row_product({.x = weighted_keys,
                       .x_stride = kDeltaChunk,
                       .m = head.changes,
                       .m_stride = d,
                       .y = head.matrix,
                       .y_stride = d,
                       .n_rows = d,
                       .n_inner = kDeltaChunk,
                       .n_cols = d,
                       .keep = decay_of(total)});
}

}  // namespace godwit::cpu
