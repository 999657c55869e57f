#include "experts/route_trace.h"

#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace godwit::experts {
namespace {

constexpr std::string_view kHeader = "godwit-route-trace 1 layers=4 experts=8\n";

std::string error_of(std::string_view text) {
  const auto trace = RouteTrace::parse(text, "t");
  return trace ? "" : trace.error().message;
}

TEST(RouteTrace, ReadsWhatTheWriterWrites) {
  const testing::TemporaryFolder folder;
  auto writer = RouteTraceWriter::create(folder.file("trace"), {.n_layers = 3, .n_experts = 9});
  ASSERT_TRUE(writer.has_value());
  writer->append(0, 1, std::vector<uint32_t>{8, 0});
  writer->append(0, 2, std::vector<uint32_t>{3});
  writer->append(5, 0, std::vector<uint32_t>{1, 2, 4});
  ASSERT_TRUE(writer->finish().has_value());
  const auto trace = RouteTrace::open(folder.file("trace"));
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->shape(), (TraceShape{3, 9}));
  EXPECT_EQ(trace->n_tokens(), 2u);
  EXPECT_EQ(trace->max_in_use(), 3u);
  ASSERT_EQ(trace->events().size(), 3u);
  EXPECT_EQ(trace->events()[2].token, 5u);
  EXPECT_EQ(trace->events()[1].layer, 2u);
  EXPECT_TRUE(std::ranges::equal(trace->experts(trace->events()[0]), std::vector<uint32_t>{8, 0}));
}

TEST(RouteTrace, AcceptsCommentsBlankLinesAndNoLastNewline) {
  const std::string text =
      "# made by hand\n\n" + std::string(kHeader) + "  # one\r\n0\t0 1 2\r\n1 3 7";
  const auto trace = RouteTrace::parse(text, "t");
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->events().size(), 2u);
  EXPECT_TRUE(RouteTrace::parse(kHeader, "t")->events().empty());
}

TEST(RouteTrace, SaysWhatIsWrongAndWhere) {
  const std::string header(kHeader);
  const std::string long_word(100000, '9');
  const std::pair<std::string, std::string> cases[] = {
      {"", "t: expected 'godwit-route-trace 1 layers=L experts=E', found nothing"},
      {"0 1 2\n", "t, line 1: expected 'godwit-route-trace 1 layers=L experts=E', found '0 1 2'"},
      {"godwit-route-trace 2 layers=1 experts=1", "t, line 1: expected version 1, found '2'"},
      {"godwit-route-trace 1 layers=0 experts=1",
       "t, line 1: expected layers=N with N from 1 to 65536, found 'layers=0'"},
      {"godwit-route-trace 1 layers=1 experts=65537",
       "t, line 1: expected experts=N with N from 1 to 65536, found 'experts=65537'"},
      {"godwit-route-trace 1 layers=1",
       "t, line 1: expected experts=N with N from 1 to 65536, found ''"},
      {"godwit-route-trace 1 layers=1 experts=1 x",
       "t, line 1: expected the end of the line, found 'x'"},
      {header + "0 4 1", "t, line 2: expected a layer below 4, found '4'"},
      {header + "0 0 8", "t, line 2: expected an expert below 8, found '8'"},
      {header + "0 0 1 2 1", "t, line 2: expert 1 stands there twice"},
      {header + "0 0", "t, line 2: expected experts after the layer, found none"},
      {header + "0", "t, line 2: expected a layer below 4, found ''"},
      {header + "-1 0 1", "t, line 2: expected a token's number, found '-1'"},
      {header + "3 0 1\n2 0 1", "t, line 3: token 2 after token 3"},
      {header + "0 0 1\x01\xff", "t, line 2: expected an expert below 8, found '1\x3f\x3f'"},
      {header + long_word,
       "t, line 2: expected a token's number, found '" + std::string(40, '9') + "...'"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(error_of(text), expected);
}

TEST(RouteTrace, AMissingFileIsNamed) {
  const auto trace = RouteTrace::open("/nowhere/trace");
  ASSERT_FALSE(trace.has_value());
  EXPECT_NE(trace.error().message.find("/nowhere/trace"), std::string::npos);
}

}  // namespace
}  // namespace godwit::experts
