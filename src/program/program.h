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
// q, k and v, and a matrix per value head. Nothing of it can be taken back: a sequence goes on
// where it is, or from its beginning.
struct State {
  uint32_t channels = 0;
  uint32_t taps = 0;
  uint32_t n_heads = 0;
  uint32_t head_dim = 0;

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
  BufferId logits;
};

// One row of work: a token at a position. Rows of one call are consecutive positions of one
// sequence, in order.
struct Row {
  TokenId token;
  Position position;
  bool wants_logits = false;
};

// Steps [begin, end) of Program::main.
struct StepRange {
  size_t begin = 0;
  size_t end = 0;
};

}  // namespace godwit::program
