#include "apps/bench/peer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

using Words = std::vector<std::string>;

// A program that answers what it is told.
std::string program(const testing::TemporaryFolder& folder, const std::string& script) {
  const std::string path = folder.file("peer").string();
  std::ofstream(path) << "#!/bin/sh\n" << script;
  EXPECT_EQ(chmod(path.c_str(), 0700), 0);
  return path;
}

TEST(Peer, IsGodwitIfItsVersionIsABareNumber) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(recognise_peer(program(folder, "echo 0.12.3")).value(), PeerKind::kGodwit);
  for (const char* other : {"echo version: 0.1.0", "echo 0.1", "echo 1.2.3; exit 1", "echo 1.2.3.4",
                            "echo", "true", "printf 1.2.3"}) {
    EXPECT_EQ(recognise_peer(program(folder, other)).value(), PeerKind::kLlamaBench) << other;
  }
  EXPECT_FALSE(recognise_peer("/no/such/program"));
}

TEST(Peer, ReadsRowsOfBothPrograms) {
  const auto rows = parse_bench_rows(
      "found 1 device\n\n"
      R"({"n_prompt": 512, "n_gen": 0, "n_depth": 4096, "avg_ts": 100.5, "build_commit": "abc"})"
      "\n"
      R"({"n_prompt":0,"n_gen":8,"avg_ts":20,"bytes_per_token":1e6,"measured_bandwidth_gbps":30})");
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].test, (BenchTest{.n_prompt = 512, .n_gen = 0, .n_depth = 4096}));
  EXPECT_EQ((*rows)[0].tokens_per_s, 100.5);
  EXPECT_EQ((*rows)[0].commit, "abc");
  EXPECT_EQ((*rows)[1].test.n_depth, 0u);
  EXPECT_EQ((*rows)[1].bytes_per_token, 1e6);
  EXPECT_EQ((*rows)[1].bandwidth_gbps, 30);
}

TEST(Peer, ReadsAListOfRows) {
  const auto rows = parse_bench_rows(
      "device: none\n[\n  {\n   \"n_prompt\": 0,\n   \"n_gen\": 8,\n"
      "   \"avg_ts\": 20.5\n  },\n"
      R"({"n_prompt": 4, "n_gen": 0, "avg_ts": 7})"
      "\n]\n");
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].test.n_gen, 8u);
  EXPECT_EQ((*rows)[1].tokens_per_s, 7);
}

TEST(Peer, RefusesWhatIsNoRow) {
  for (const char* text :
       {"", "hello\n", "{\n", "{}\n", "[\n", "[]\n", "[1]\n", "[{}]\n",
        R"({"n_prompt":1,"n_gen":0})", R"({"n_prompt":-1,"n_gen":0,"avg_ts":1})",
        R"({"n_prompt":1,"n_gen":0,"avg_ts":0})", R"({"n_prompt":1,"n_gen":0,"avg_ts":"1"})",
        R"({"n_prompt":1,"n_gen":0,"avg_ts":1e999})", R"({"n_prompt":[1],"n_gen":0,"avg_ts":1})"}) {
    EXPECT_FALSE(parse_bench_rows(text)) << text;
  }
}

PeerPlan plan() {
  PeerPlan made;
  made.peer.program = "/peer";
  made.flags = {"--n-prompt=4", "--n-prompt=8"};
  made.model = "/m.gguf";
  made.n_threads = 3;
  made.lists.prompts = {4, 8};
  made.lists.generations = {2};
  made.lists.prompt_gens = {"5,6"};
  made.lists.depths = {0, 64};
  return made;
}

TEST(Peer, BothSidesAreAskedForTheSame) {
  EXPECT_EQ(own_command(plan(), "/godwit"),
            (Words{"/godwit", "bench", "--n-prompt=4", "--n-prompt=8", "--model=/m.gguf",
                   "--threads=3", "--repetitions=1", "--output=jsonl"}));
  EXPECT_EQ(llama_bench_command(plan()),
            (Words{"/peer", "-m", "/m.gguf", "-p", "4,8", "-n", "2", "-pg", "5,6", "-d", "0,64",
                   "-t", "3", "-r", "1", "-o", "json"}));
  PeerPlan other = plan();
  other.chunk_tokens = 128;
  other.v_type = "f32";
  const Words command = llama_bench_command(other);
  EXPECT_NE(std::ranges::find(command, "-ub"), command.end());
  EXPECT_NE(std::ranges::find(command, "-ctv"), command.end());
  EXPECT_EQ(std::ranges::find(command, "-ctk"), command.end());
}

TEST(Peer, FlagsAreHandedOnButForThoseThatAPlanHas) {
  CLI::App app;
  CLI::App* command = app.add_subcommand("bench", "");
  ModelOptions model;
  PeerOptions peer;
  std::vector<size_t> prompts;
  bool flag = false;
  add_model_options(*command, model);
  add_peer_options(*command, peer);
  command->add_option("-p,--n-prompt", prompts, "")->delimiter(',');
  command->add_flag("--some", flag, "");
  app.parse("bench -m x -t 4 -p 1,2 --peer y --peer-arg z --some -c 100", false);
  EXPECT_EQ(flags_of(*command),
            (Words{"--ctx-size=100", "--n-prompt=1", "--n-prompt=2", "--some=true"}));
}

TEST(Peer, RatiosAreOfNeighbours) {
  const PeerComparison c{.test = {.n_prompt = 0, .n_gen = 4, .n_depth = 0},
                         .ours = {100, 300, 210},
                         .theirs = {50, 100, 100},
                         .bytes_per_token = 1e6,
                         .bandwidths_gbps = {1, 2, 3}};
  EXPECT_EQ(c.ratios(), (std::vector<double>{2, 3, 2.1}));
  const ReportRow row = peer_row(plan(), c);
  EXPECT_EQ(row.cells.size(), peer_columns().size());
  EXPECT_EQ(row.json["ratio"], 2.1);
  EXPECT_EQ(row.json["ratio_min"], 2.0);
  EXPECT_EQ(row.json["ratio_max"], 3.0);
  EXPECT_DOUBLE_EQ(row.json["gbps"].get<double>(), 0.21);
  EXPECT_DOUBLE_EQ(row.json["percent_of_bandwidth"].get<double>(), 10.5);
}

}  // namespace
}  // namespace godwit::apps
