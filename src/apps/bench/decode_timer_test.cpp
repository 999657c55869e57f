#include "apps/bench/decode_timer.h"

#include <gtest/gtest.h>

#include "apps/bench/prefill_timer.h"

namespace godwit::apps {
namespace {

// 1 MB a token. Three repetitions: the machine was slow in one of them, memory and all.
DecodeRow row() {
  DecodeRow made;
  made.row.test = {.n_prompt = 0, .n_gen = 2, .n_depth = 512};
  made.row.samples_ns = {220e3, 440e3, 260e3};
  made.row.bytes_per_token = 1e6;
  made.repetitions = {{.token_us = {100, 120}, .bandwidth_gbps = 20},
                      {.token_us = {200, 240}, .bandwidth_gbps = 10},
                      {.token_us = {120, 140}, .bandwidth_gbps = 20}};
  return made;
}

TEST(DecodeRow, SpeedIsThatOfTheMedianToken) {
  EXPECT_DOUBLE_EQ(row().token_us(0.5), 130);
  EXPECT_DOUBLE_EQ(row().tokens_per_s(), 1e6 / 130);
  EXPECT_DOUBLE_EQ(row().gbps(), 1e6 / 130e-6 * 1e-9);
  EXPECT_DOUBLE_EQ(row().bandwidth_gbps(), 20);
  EXPECT_DOUBLE_EQ(row().floor_us(), 50);
}

TEST(DecodeRow, AShareNeverJoinsTwoMoments) {
  // 50 / 110, 100 / 220 and 50 / 130 us: the slow repetition is as near its floor as the first.
  EXPECT_DOUBLE_EQ(row().percent_of_floor(), 100 * 50.0 / 110);
}

TEST(DecodeRow, UnmeasuredBandwidthIsNoInfinity) {
  DecodeRow blind = row();
  for (DecodeRepetition& r : blind.repetitions) r.bandwidth_gbps = 0;
  EXPECT_EQ(blind.percent_of_floor(), 0);
  EXPECT_EQ(blind.floor_us(), 0);
}

TEST(DecodeRow, HasLlamaBenchsKeysBesideItsOwn) {
  const ReportRow made = decode_report_row({}, "random", row());
  EXPECT_EQ(made.cells.size(), decode_columns().size());
  EXPECT_EQ(made.json["n_depth"], 512);
  EXPECT_EQ(made.json["n_gen"], 2);
  EXPECT_EQ(made.json["samples_ns"].size(), 3u);
  EXPECT_EQ(made.json["start_position"], 512);
  EXPECT_EQ(made.json["fill_state"], "random");
  EXPECT_DOUBLE_EQ(made.json["percent_of_floor"].get<double>(), row().percent_of_floor());
}

TEST(PrefillRow, CountsMultiplyAddsAtTheMedianSpeed) {
  PrefillRow prefill;
  prefill.row.test = {.n_prompt = 100, .n_gen = 0, .n_depth = 0};
  prefill.row.samples_ns = {1e9, 2e9, 0.5e9};
  prefill.multiply_adds_per_token = 3e9;
  EXPECT_DOUBLE_EQ(prefill.tokens_per_s(), 100);
  EXPECT_DOUBLE_EQ(prefill.giga_multiply_adds_per_s(), 300);
  EXPECT_EQ(prefill_report_row({}, "zeros", prefill).cells.size(), prefill_columns().size());
}

}  // namespace
}  // namespace godwit::apps
