// The Gated DeltaNet layer of program::Recurrent, one row at a time, in double precision: the
// sequential form, which defines what every other form must give.
// Source: Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024, and Qwen3-Next's use of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.h"

namespace godwit::reference {

struct DeltaState {
  explicit DeltaState(const program::State& shape);
  void reset();

  int32_t next_position = 0;
  std::vector<double> rows;    // [taps - 1, channels], oldest first, raw
  std::vector<double> matrix;  // [n_heads, head_dim of k, head_dim of v]
};

// The state, and what it was before each row that may be taken back.
struct DeltaStates {
  explicit DeltaStates(const program::State& shape) : now(shape) {}
  // Makes it what it was before the row at a position: where it is, or a tentative row's, or the
  // beginning of a sequence. Nothing can be taken back after that.
  void go_to(int32_t position);
  // The same, to look at. Precondition (checked): as above.
  [[nodiscard]] const DeltaState& at(int32_t position) const;

  DeltaState now;
  std::vector<DeltaState> before;
};

struct DeltaLayer {
  program::Recurrent step;  // its shape and layout
  size_t taps;
  std::vector<double> conv;     // [channels, taps]
  std::vector<double> dt_bias;  // [n_heads]
  std::vector<double> decay;    // [n_heads]
  std::vector<double> norm;     // [head_dim]
};

struct DeltaRow {
  std::span<const double> qkv;
  std::span<const double> z;  // empty where qkv holds it
  std::span<const double> b;
  std::span<const double> a;  // empty where b holds it
  std::span<double> out;      // [n_heads, head_dim]
};

void delta_row(const DeltaLayer& layer, const DeltaRow& row, DeltaState& state);

}  // namespace godwit::reference
