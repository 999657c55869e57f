#include "apps/stats.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

engine::GenerateResult result() {
  engine::GenerateResult r;
  r.tokens.resize(64);
  r.n_prompt = 31;
  r.n_decode_steps = 63;
  r.n_decode_tokens = 63;
  r.reason = engine::StopReason::kEndOfText;
  return r;
}

const DecodeFigures kFigures{.prompt_tokens_per_s = 812.04,
                             .decode_tokens_per_s = 241,
                             .bytes_per_token = 98.4e6,
                             .gbps = 23.7,
                             .bandwidth_gbps = 33.5};

TEST(StatsLine, SetsSpeedBesideBytesAndBandwidth) {
  EXPECT_EQ(stats_line(result(), kFigures),
            "prompt 31 tokens, 812.0 tok/s | decode 64 tokens, 241.0 tok/s | 98.4 MB/token, "
            "23.7 GB/s, 71 % of the 33.5 GB/s measured | ended by end of text");
}

TEST(StatsLine, SetsMemoryBesideItsPlan) {
  DecodeFigures figures = kFigures;
  figures.resident.peak_bytes = uint64_t{100} << 20;
  EXPECT_NE(stats_line(result(), figures).find(" | 100.0 MiB resident | ended"), std::string::npos);
  figures.resident.planned_bytes = uint64_t{200} << 20;
  figures.resident.n_positions = 512;
  EXPECT_NE(stats_line(result(), figures)
                .find(" | 100.0 MiB resident, 200.0 MiB planned for 512 positions | ended"),
            std::string::npos);
}

TEST(StatsLine, SaysWhatWasKept) {
  engine::GenerateResult kept = result();
  kept.n_reused = 20;
  EXPECT_TRUE(stats_line(kept, kFigures).starts_with("prompt 31 tokens (20 kept), "));
}

TEST(StatsLine, LeavesOutWhatWasNotMeasured) {
  DecodeFigures blind = kFigures;
  blind.bandwidth_gbps = 0;
  EXPECT_EQ(stats_line(result(), blind).find('%'), std::string::npos);
  engine::GenerateResult one = result();
  one.n_decode_steps = 0;
  EXPECT_EQ(stats_line(one, kFigures).find("GB/s"), std::string::npos);
}

TEST(StatsLine, SaysWhatDraftsGained) {
  EXPECT_EQ(stats_line(result(), kFigures).find("drafted"), std::string::npos);
  engine::GenerateResult drafted = result();
  drafted.n_decode_steps = 21;
  drafted.speculation = {.n_drafted = 60,
                         .n_accepted = 42,
                         .n_calls = 10,
                         .seconds = 31.5,
                         .n_single_calls = 11,
                         .single_seconds = 11.0};
  EXPECT_NE(stats_line(drafted, kFigures)
                .find(" | drafted 60, right 42 (70 %), 3.00 tokens/step, gain 2.00x | ended"),
            std::string::npos)
      << stats_line(drafted, kFigures);
}

}  // namespace
}  // namespace godwit::apps
