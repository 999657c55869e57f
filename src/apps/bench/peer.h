// `--peer`: another program runs the same tests in turn with this one, in the order A B B A, so
// that a machine that speeds up or slows down in between favours neither. Both sides are programs
// of their own, one at a time, and answer in llama-bench's JSON: this one, a llama-bench, or
// another build of Godwit. Their answers are input that nobody vouches for.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/bench_plan.h"
#include "apps/bench/report.h"
#include "apps/model_options.h"
#include "base/result.h"

namespace godwit::apps {

struct PeerOptions {
  std::string program;                 // "": no peer
  std::vector<std::string> arguments;  // for it alone, after ours
};

void add_peer_options(CLI::App& command, PeerOptions& options);

enum class PeerKind : uint8_t { kGodwit, kLlamaBench };

// By what it answers to --version. Errors: it cannot be run.
[[nodiscard]] Result<PeerKind> recognise_peer(const std::string& program);

// A row that a side has printed.
struct BenchedTest {
  BenchTest test;
  double tokens_per_s = 0;
  double bytes_per_token = 0;  // Godwit's own keys; 0: not told
  double bandwidth_gbps = 0;
  std::string model_type = {};
  std::string commit = {};
};

// A list, or a row a line. What begins with neither bracket nor brace is passed over: some programs
// print their device there. Errors: what is no row of a bench; no rows at all.
[[nodiscard]] Result<std::vector<BenchedTest>> parse_bench_rows(std::string_view text);

// What both sides measured of one test, run by run.
struct PeerComparison {
  BenchTest test;
  std::string model_type = {};
  std::string commit = {};
  std::string peer_commit = {};
  std::vector<double> ours = {};    // tokens/s
  std::vector<double> theirs = {};  // the i-th ran right before or after the i-th of ours
  double bytes_per_token = 0;
  std::vector<double> bandwidths_gbps = {};

  [[nodiscard]] std::vector<double> ratios() const;  // ours / theirs, run by run
};

// What is run, for one model.
struct PeerPlan {
  PeerOptions peer;
  std::vector<std::string> words = {"bench"};  // the command
  std::vector<std::string> flags;              // of this command but for those below
  std::string model;                           // a file
  size_t n_threads = 0;
  BenchLists lists;  // what llama-bench is to do; the flags say it to a Godwit
  size_t chunk_tokens = 512;
  std::string k_type = "f16";
  std::string v_type = "f16";
  size_t n_rounds = 1;  // of A B B A
};

// The flags given to a command, so that another run of it does the same: without those of the
// output, the peer, the model and the threads, which a PeerPlan has by themselves.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::App& command);
[[nodiscard]] std::vector<std::string> own_command(const PeerPlan& plan,
                                                   const std::string& program);
[[nodiscard]] std::vector<std::string> llama_bench_command(const PeerPlan& plan);

// Runs all rounds. Errors: a side that fails (its last line on stderr is told), or that has not
// measured what the other has.
[[nodiscard]] Result<std::vector<PeerComparison>> compare_with_peer(const PeerPlan& plan);

[[nodiscard]] std::vector<ReportColumn> peer_columns();
[[nodiscard]] ReportRow peer_row(const PeerPlan& plan, const PeerComparison& comparison);

// Everything: of one model after the other, as a table on stdout.
[[nodiscard]] Status bench_beside_peer(std::vector<PeerPlan> plans, BenchFormat format);

// The part of a plan that the model's flags say. Errors: a model that is not there.
[[nodiscard]] Result<PeerPlan> peer_plan(const PeerOptions& peer, const ModelOptions& model,
                                         const CLI::App& command);

}  // namespace godwit::apps
