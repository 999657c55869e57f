#include "apps/bench/multiply_adds.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

using namespace program;

WeightRef matrix(uint64_t rows, uint64_t cols) {
  return {.id = 0, .type = TensorType::kF32, .rows = rows, .cols = cols};
}

Program program_of(std::vector<Operation> operations) {
  Program made;
  for (Operation& operation : operations) made.main.push_back({"", std::move(operation)});
  return made;
}

TEST(MultiplyAdds, AreThoseOfTheMatricesOfARow) {
  NormProject project;
  project.projections = {{.weight = matrix(3, 4), .bias = {}, .out = {}},
                         {.weight = matrix(5, 4), .bias = {}, .out = {}}};
  GatedUp up;
  up.gate = up.up = matrix(7, 4);
  ProjectAdd down;
  down.weight = matrix(4, 7);
  Output output;
  output.weight = matrix(1000, 4);
  EXPECT_EQ(multiply_adds(program_of({project, up, down, output}), 9), 12u + 20 + 2 * 28 + 28);
}

TEST(MultiplyAdds, AttentionSeesItsOwnPositionAndThoseBeforeWithinTheWindow) {
  Attend attend;
  attend.n_heads = 2;
  attend.head_dim = 8;
  EXPECT_EQ(multiply_adds(program_of({attend}), 0), 32u);
  EXPECT_EQ(multiply_adds(program_of({attend}), 99), 3200u);
  attend.window = 10;
  EXPECT_EQ(multiply_adds(program_of({attend}), 99), 320u);
}

TEST(MultiplyAdds, OnlyTheExpertsThatARowGoesToCount) {
  ExpertGatedUp up;
  up.routing.n_used = 2;
  up.gate = {.weight = matrix(16 * 3, 4), .n_experts = 16, .bias = {}};
  up.up = up.gate;
  up.shared_gate = up.shared_up = matrix(6, 4);
  EXPECT_EQ(multiply_adds(program_of({up}), 0), 2u * 2 * 12 + 2 * 24);
}

}  // namespace
}  // namespace godwit::apps
