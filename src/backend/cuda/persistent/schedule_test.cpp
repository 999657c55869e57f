#include "backend/cuda/persistent/schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "backend/cuda/persistent/bench/program.h"
#include "backend/cuda/persistent/layout.h"
#include "backend/cuda/persistent/schedule_check.h"

namespace godwit::cuda::persistent {
namespace {

constexpr Geometry kH200{.n_ctas = 132, .shared_bytes = 230400, .keep_bytes = 0};

Schedule schedule_of(const BenchSpec& spec) {
  const program::Program program = bench_program(spec);
  Result<Schedule> schedule = make_schedule(program, kH200);
  EXPECT_TRUE(schedule) << spec.name << ": " << (schedule ? "" : schedule.error().message);
  return schedule ? std::move(*schedule) : Schedule{};
}

std::string refusal(const Schedule& schedule, uint32_t position) {
  const Status status = check_schedule(schedule, position);
  return status ? "" : status.error().message;
}

TEST(Layout, APlaceInASlotAndItsElementAreOneToOne) {
  for (uint32_t i = 0; i < kSlotElements; ++i) ASSERT_EQ(element_in_slot(place_in_slot(i)), i);
}

TEST(Layout, ALaneLoadsEightWeightsOfItsRowForBothHalvesOfTheOperand) {
  // mma.m16n8k16: lane l has columns 2 (l % 4) + {0, 1, 8, 9} of rows l / 4 (k..k+15) and, in the
  // other two registers, of row l / 4 + 8, which here is the same row at k + 16.
  for (uint32_t lane = 0; lane < 32; ++lane) {
    std::set<uint32_t> columns;
    for (uint32_t e = 0; e < kPieceElements; ++e) {
      const SlotPlace at = place_in_slot(lane * kPieceElements + e);
      EXPECT_EQ(at.row, lane / 4);
      columns.insert(at.column);
    }
    const uint32_t k = lane % 4 * 2;
    EXPECT_EQ(columns,
              (std::set<uint32_t>{k, k + 1, k + 8, k + 9, k + 16, k + 17, k + 24, k + 25}));
  }
}

TEST(Layout, EveryElementOfAStagedMatrixHasAPlaceOfItsOwn) {
  Shape shape;
  shape.n_blocks = 3;
  shape.n_chunks = 5;
  shape.stage_chunks = 2;
  shape.n_stages = 3;
  std::vector<bool> taken(packed_elements(shape));
  for (uint32_t row = 0; row < shape.n_blocks * kSlotRows; ++row) {
    for (uint32_t column = 0; column < shape.n_chunks * kSlotColumns; ++column) {
      const uint64_t i = packed_index(shape, row, column);
      ASSERT_LT(i, taken.size());
      ASSERT_FALSE(taken[i]);
      taken[i] = true;
    }
  }
}

TEST(Layout, APartialResultFitsItsWordsAndSharesNoLine) {
  for (const uint32_t head_dim : {64u, 128u}) {
    for (uint32_t group = 1; group <= kMaxGroup; ++group) {
      Shape shape;
      shape.group = group;
      shape.head_dim = head_dim;
      EXPECT_GE(partial_words(shape), group * (kPartialHeader + head_dim));
      EXPECT_EQ(partial_words(shape) % 32, 0u);
    }
  }
}

TEST(Schedule, IsProvenForEachShapeOfModelAndPosition) {
  for (const BenchSpec& spec : bench_specs()) {
    const Schedule schedule = schedule_of(spec);
    for (const uint32_t position : {0u, 1u, 63u, 64u, 65u, 1023u, 1024u, 1025u, 33023u}) {
      EXPECT_EQ(refusal(schedule, position), "") << spec.name << " at " << position;
    }
  }
}

TEST(Schedule, IsProvenForOtherCards) {
  for (const uint32_t n_ctas : {144u, 114u, 78u, 66u}) {
    Geometry geometry = kH200;
    geometry.n_ctas = n_ctas;
    const program::Program program = bench_program(bench_spec("llama-1b"));
    const Result<Schedule> schedule = make_schedule(program, geometry);
    ASSERT_TRUE(schedule) << n_ctas << ": " << schedule.error().message;
    EXPECT_EQ(refusal(*schedule, 5000), "") << n_ctas;
  }
}

TEST(Schedule, FitsTheSharedMemoryItWasGiven) {
  for (const BenchSpec& spec : bench_specs()) {
    const Schedule schedule = schedule_of(spec);
    EXPECT_LE(schedule.shared.total, kH200.shared_bytes) << spec.name;
  }
  EXPECT_EQ(schedule_of(bench_spec("llama-1b")).shared.ring_slots, 12u);
}

TEST(Schedule, KeepsWeightsInTheL2UpToTheBudget) {
  Geometry geometry = kH200;
  geometry.keep_bytes = 43'000'000;
  const program::Program program = bench_program(bench_spec("llama-1b"));
  const Result<Schedule> schedule = make_schedule(program, geometry);
  ASSERT_TRUE(schedule);
  uint64_t kept = 0;
  for (const PhasePlan& plan : schedule->phases) {
    const Shape& shape = schedule->shape_of(plan);
    if (plan.phase.keep != 0) kept += uint64_t{shape.n_blocks} * shape.n_chunks * kSlotBytes;
  }
  EXPECT_LE(kept, geometry.keep_bytes);
  EXPECT_GT(kept, geometry.keep_bytes / 2);
}

TEST(Schedule, SaysWhatItDoesNotRun) {
  const auto refused = [](const std::function<void(program::Program&)>& change) {
    program::Program program = bench_program(bench_spec("llama-1b"));
    change(program);
    const Result<Schedule> schedule = make_schedule(program, kH200);
    return schedule ? std::string() : schedule.error().message;
  };
  const auto attend = [](program::Program& p) -> program::Attend& {
    return std::get<program::Attend>(p.main[2].operation);
  };
  EXPECT_EQ(refused([&](auto& p) { attend(p).window = 4096; }),
            "blk.0.attend: gates, query scales, soft caps and windows do not run here");
  EXPECT_EQ(refused([&](auto& p) { p.ropes[0].n_rot = 32; }),
            "blk.0.attend: RoPE turns 32 of 64 dimensions; all or none run here");
  EXPECT_EQ(refused([&](auto& p) {
              std::get<program::ProjectAdd>(p.main[3].operation).weight.type = TensorType::kQ8_0;
            }),
            "blk.0.attn_out: weights of Q8_0");
  EXPECT_EQ(refused([&](auto& p) { p.main.erase(p.main.begin() + 3); }),
            "81 steps are no sequence of dense layers");
}

// Each mistake must be found; the first word of the reason tells which check did.
TEST(ScheduleCheck, RefusesEachPlantedMistake) {
  struct Mistake {
    const char* name;
    const char* reason;
    std::function<void(Schedule&)> plant;
  };
  const auto shape = [](Schedule& s, size_t phase) -> Shape& {
    return s.shapes[s.phases[phase].phase.shape];
  };
  const std::vector<Mistake> mistakes = {
      {"a block too few", "rows left out", [&](Schedule& s) { --shape(s, 0).n_blocks; }},
      {"a chunk too few", "columns left out", [&](Schedule& s) { --shape(s, 4).n_chunks; }},
      {"a stage too few", "nobody eats", [&](Schedule& s) { --shape(s, 4).n_stages; }},
      {"too few places for sums", "places", [&](Schedule& s) { shape(s, 4).open_blocks = 1; }},
      {"rotated too far", "rotated", [](Schedule& s) { s.phases[3].phase.rotate = 132; }},
      {"stages that do not divide the chunks", "not block",
       [&](Schedule& s) { shape(s, 4).stage_chunks = 3; }},
      {"more pieces than a merge can take", "65 pieces",
       [&](Schedule& s) {
         shape(s, 1).n_kv_heads = 1;
         shape(s, 1).pieces = kMaxPieces + 1;
       }},
      {"a table of nothing", "no such table", [](Schedule& s) { s.phases.clear(); }},
      {"too little memory for words", "activations end", [](Schedule& s) { s.n_words -= 128; }},
      {"more pieces than CTAs", "pieces", [&](Schedule& s) { shape(s, 1).pieces = 17; }},
      {"a ring of 10", "ring", [](Schedule& s) { s.shared.ring_slots = 10; }},
      {"a tag of the layer before", "awaits tag",
       [](Schedule& s) { s.phases[8].phase.in_tag = 0; }},
      {"a version written twice", "writes tag", [](Schedule& s) { s.phases[9].phase.out_tag = 1; }},
      {"two layers swapped", "tag", [](Schedule& s) { std::swap(s.phases[4], s.phases[9]); }},
      {"a read before its write", "never written",
       [](Schedule& s) { std::swap(s.phases[0], s.phases[1]); }},
      {"buffers that overlap", "overlap", [&](Schedule& s) { shape(s, 1).out.offset += 64; }},
      {"one place for both residuals", "may overwrite",
       [&](Schedule& s) { shape(s, 2).out = shape(s, 3).in = shape(s, 4).extra = s.embed.out; }},
      {"a wrong step between tokens", "versions", [&](Schedule& s) { shape(s, 1).extra.step = 1; }},
  };
  for (const Mistake& mistake : mistakes) {
    Schedule schedule = schedule_of(bench_spec("llama-1b"));
    mistake.plant(schedule);
    EXPECT_NE(refusal(schedule, 2048).find(mistake.reason), std::string::npos)
        << mistake.name << ": " << refusal(schedule, 2048);
  }
}

}  // namespace
}  // namespace godwit::cuda::persistent
