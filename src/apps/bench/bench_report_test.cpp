#include "apps/bench/bench_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace godwit::apps {
namespace {

using nlohmann::json;

BenchSetting setting() {
  return {.model_path = "models/a \"b\", c.gguf",
          .model_type = "llama 135M Q4_1",
          .model_bytes = uint64_t{94} << 20,
          .n_params = 134515008,
          .backend = "cpu",
          .processor = "A Processor",
          .isa = "avx2",
          .commit = "abc1234",
          .n_threads = 2,
          .chunk_tokens = 512,
          .k_type = "f16",
          .v_type = "f16",
          .bandwidth_gbps = 32.0};
}

// Two repetitions of ten tokens: 100 and 50 tokens a second.
BenchRow row() {
  return {.test = {.n_prompt = 0, .n_gen = 10, .n_depth = 8},
          .time = "2026-01-02T03:04:05Z",
          .samples_ns = {1e8, 2e8},
          .bytes_per_token = 1e8};
}

std::string report(BenchFormat format, int rows, const BenchSetting& s = setting()) {
  Report made(format, bench_columns());
  std::string text;
  for (int i = 0; i < rows; ++i) text += made.add(bench_row(s, row()));
  return text + made.end(bench_footer(s));
}

size_t count(const std::string& text, char c) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), c));
}

TEST(BenchReport, SpeedIsTheMeanOfTheRepetitionsSpeeds) {
  EXPECT_EQ(row().tokens_per_s(), (std::vector<double>{100, 50}));
  EXPECT_DOUBLE_EQ(row().gbps(), 7.5);  // 1e8 bytes at 75 tokens a second
}

TEST(BenchReport, JsonHasLlamaBenchsKeysAndTypes) {
  const json rows = json::parse(report(BenchFormat::kJson, 2));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["model_filename"], setting().model_path);
  EXPECT_EQ(rows[0]["n_gen"], 10);
  EXPECT_EQ(rows[0]["n_depth"], 8);
  EXPECT_EQ(rows[0]["avg_ns"], 150000000);
  EXPECT_TRUE(rows[0]["avg_ns"].is_number_integer());
  EXPECT_EQ(rows[0]["samples_ns"], (json{100000000, 200000000}));
  EXPECT_DOUBLE_EQ(rows[0]["avg_ts"].get<double>(), 75.0);
  EXPECT_NEAR(rows[0]["stddev_ts"].get<double>(), 35.355, 0.001);  // of a sample: divided by n - 1
  EXPECT_NEAR(rows[0]["percent_of_bandwidth"].get<double>(), 100 * 7.5 / 32, 1e-9);
  EXPECT_EQ(json::parse(report(BenchFormat::kJson, 1)).size(), 1u);
}

TEST(BenchReport, EveryJsonLineStandsAlone) {
  const std::string text = report(BenchFormat::kJsonLines, 2);
  EXPECT_EQ(count(text, '\n'), 2u);
  EXPECT_EQ(json::parse(text.substr(0, text.find('\n')))["n_gen"], 10);
}

TEST(BenchReport, CsvQuotesValues) {
  const std::string text = report(BenchFormat::kCsv, 1);
  const std::string names = text.substr(0, text.find('\n'));
  EXPECT_EQ(count(text, '\n'), 2u);
  EXPECT_NE(text.find(R"("models/a ""b"", c.gguf")"), std::string::npos) << text;
  // One comma within the path.
  EXPECT_EQ(count(names, ',') + 1, count(text.substr(names.size()), ','));
  EXPECT_EQ(names.find("samples"), std::string::npos);
}

TEST(BenchReport, MarkdownRowsHaveAsManyColumnsAsTheHeader) {
  const std::string text = report(BenchFormat::kMarkdown, 1);
  const std::string header = text.substr(0, text.find('\n'));
  EXPECT_TRUE(header.starts_with("| model "));
  EXPECT_EQ(count(text, '|'), 3 * count(header, '|'));
  EXPECT_NE(text.find(" tg10 @ d8 | "), std::string::npos) << text;
  EXPECT_NE(text.find(" 75.00 \u00b1 35.36 | "), std::string::npos) << text;
  EXPECT_NE(text.find("commit abc1234"), std::string::npos) << text;
}

TEST(BenchReport, LargeModelsAreCountedInGibAndBillions) {
  BenchSetting large = setting();
  large.model_bytes = uint64_t{3} << 30;
  large.n_params = 3'500'000'000;
  const std::string text = report(BenchFormat::kMarkdown, 1, large);
  EXPECT_NE(text.find("3.00 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("3.50 B"), std::string::npos) << text;
}

TEST(BenchReport, ANameThatIsNotUtf8DoesNotBreakJson) {
  BenchSetting odd = setting();
  odd.model_path = "\xff.gguf";
  EXPECT_TRUE(json::accept(report(BenchFormat::kJsonLines, 1, odd)));
  EXPECT_NO_THROW((void)report(BenchFormat::kCsv, 1, odd));
}

TEST(BenchReport, UnmeasuredBandwidthIsNoInfinity) {
  BenchSetting blind = setting();
  blind.bandwidth_gbps = 0;
  const json parsed = json::parse(report(BenchFormat::kJsonLines, 1, blind));
  EXPECT_EQ(parsed["percent_of_bandwidth"], 0.0);
}

TEST(BenchReport, ActivationsOfFewerBitsAreTold) {
  BenchSetting rough = setting();
  EXPECT_EQ(machine_line(rough).find("activations"), std::string::npos);
  rough.activation_bits = 8;
  EXPECT_NE(machine_line(rough).find(", activations of 8 bits"), std::string::npos);
  EXPECT_EQ(bench_row(rough, row()).json["activation_bits"], 8);
}

TEST(Report, WithoutRowsIsStillJson) {
  EXPECT_EQ(json::parse(Report(BenchFormat::kJson, {}).end("x")), json::array());
}

TEST(BenchReport, KnowsItsFormats) {
  EXPECT_EQ(parse_bench_format("jsonl").value(), BenchFormat::kJsonLines);
  EXPECT_FALSE(parse_bench_format("JSON"));
  EXPECT_FALSE(parse_bench_format(""));
}

}  // namespace
}  // namespace godwit::apps
