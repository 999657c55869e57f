// A model as a flat list of steps, with the tables its operands index. Built once at load by
// model/arch/<name>.cpp through ProgramBuilder; every executor runs this same object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "program/step.h"

namespace godwit::program {

struct Weight {
  std::string name;
  TensorType type = TensorType::kF32;
  uint64_t rows = 0;
  uint64_t cols = 0;
};

// Activations of a row; an executor holds as many rows as it runs at once.
struct Buffer {
  std::string name;
  uint64_t width = 0;  // floats per row
};

struct Kv {
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
};

// What a Gated DeltaNet layer carries from token to token, f32: the last taps - 1 raw rows of its
// q, k and v, and a matrix per value head, those of a key head together. Nothing of it can be taken
// back but tentative rows (Row): a sequence goes on where it is, or from its beginning.
struct State {
  uint32_t channels = 0;
  uint32_t taps = 0;
  uint32_t n_heads = 0;
  uint32_t head_dim = 0;

  // The channels are q and k of the key heads, then v of the value heads.
  [[nodiscard]] uint32_t n_key_heads() const { return (channels / head_dim - n_heads) / 2; }
  [[nodiscard]] uint64_t conv_floats() const { return uint64_t{channels} * (taps - 1); }
  [[nodiscard]] uint64_t floats() const { return conv_floats() + matrix_floats(); }
  [[nodiscard]] uint64_t matrix_floats() const { return uint64_t{n_heads} * head_dim * head_dim; }
};

// Angles of position p: p * frequencies[i], i < n_rot / 2; both sine and cosine times `magnitude`.
struct Rope {
  uint32_t n_rot = 0;               // leading dimensions of each head that turn
  std::vector<double> frequencies;  // [n_rot / 2], radians per position
  double magnitude = 1.0;           // YaRN's attention factor
};

// The lists of steps of a Program.
enum class StepList : uint8_t { kMain, kMtp };

struct Program {
  std::string architecture;
  uint32_t n_layers = 0;
  uint64_t dim = 0;
  uint64_t n_vocab = 0;
  uint64_t trained_context = 0;  // positions

  std::vector<Weight> weights;
  std::vector<Buffer> buffers;
  std::vector<Kv> kvs;
  std::vector<Rope> ropes;
  std::vector<State> states;
  std::vector<Step> main;
  // The head that predicts one token further (multi-token prediction), where it was asked for and
  // the file has one. A row of it stands at a position and holds the token after that position;
  // its logits, in the same buffer, are those of the token after next. The first step takes the
  // rows' final hidden states, normed, from what their run of `main` left into `mtp_hidden`, row by
  // row; the others read them there and leave the head's own, so that they can run again from
  // those on a token that the head predicted.
  std::vector<Step> mtp;
  BufferId mtp_hidden;  // [dim]
  BufferId logits;

  [[nodiscard]] const std::vector<Step>& steps(StepList list) const {
    return list == StepList::kMain ? main : mtp;
  }
};

// One row of work: a token at a position. Rows of one call are consecutive positions of one
// sequence, in order.
struct Row {
  TokenId token;
  Position position;
  bool wants_logits = false;
  // May be taken back: the next run may begin at this position, or at that of a tentative row
  // after it. The tentative rows of a call are its last ones.
  bool tentative = false;
};

// Steps [begin, end) of a list of a Program.
struct StepRange {
  size_t begin = 0;
  size_t end = 0;
  StepList list = StepList::kMain;
};

// Calls f(step) for the steps of all lists.
template <class F>
void for_each_step(const Program& program, const F& f) {
  for (const Step& step : program.main) f(step);
  for (const Step& step : program.mtp) f(step);
}

}  // namespace godwit::program
