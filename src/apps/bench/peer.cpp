#include "apps/bench/peer.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/bench/bench_setting.h"
#include "base/median.h"
#include "os/child.h"
#include "os/cpu_features.h"
#include "os/topology.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

// Some thousands of rows. Parsed, an answer takes up to 75 times its bytes.
constexpr size_t kMaxAnswerBytes = size_t{4} << 20;
constexpr auto kLeft = ReportColumn::Align::kLeft;

// Of a row; 0 where there is no such number.
double number(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? found->get<double>() : 0;
}

std::optional<size_t> count(const json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<size_t>();
}

std::string text(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<BenchedTest> parse_row(const json& row, std::string_view said) {
  const auto n_prompt = row.is_object() ? count(row, "n_prompt") : std::nullopt;
  const auto n_gen = row.is_object() ? count(row, "n_gen") : std::nullopt;
  if (!n_prompt || !n_gen)
    return fail("no object with n_prompt and n_gen: {}", said.substr(0, 200));
  const double speed = number(row, "avg_ts");
  if (!std::isfinite(speed) || speed <= 0)
    return fail("no tokens a second in avg_ts: {}", said.substr(0, 200));
  return BenchedTest{.test = {.n_prompt = *n_prompt,
                              .n_gen = *n_gen,
                              .n_depth = count(row, "n_depth").value_or(0)},
                     .tokens_per_s = speed,
                     .bytes_per_token = number(row, "bytes_per_token"),
                     .bandwidth_gbps = number(row, "measured_bandwidth_gbps"),
                     .model_type = text(row, "model_type"),
                     .commit = text(row, "build_commit")};
}

// "0.1.0\n", as Godwit answers to --version and llama-bench does not.
bool is_bare_version(std::string_view text) {
  const auto digits = [&] {
    const size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(n);
    return n > 0;
  };
  for (const std::string_view after : {".", ".", "\n"}) {
    if (!digits() || !text.starts_with(after)) return false;
    text.remove_prefix(1);
  }
  return text.empty();
}

Result<std::vector<BenchedTest>> run_side(const std::vector<std::string>& command) {
  const Result<os::ChildAnswer> answer = os::ask_child(command, kMaxAnswerBytes);
  if (!answer) return fail(answer.error());
  if (answer->exit_code != 0) {
    return fail("'{}' ended with exit code {}: {}", fmt::join(command, " "), answer->exit_code,
                answer->last_error_line.empty() ? "(nothing on its standard error)"
                                                : answer->last_error_line);
  }
  Result<std::vector<BenchedTest>> rows = parse_bench_rows(answer->out);
  if (!rows) return fail("'{}': {}", fmt::join(command, " "), rows.error().message);
  return rows;
}

// Rows of each side, in the order in which the sides ran.
struct Round {
  std::vector<BenchedTest> ours;
  std::vector<BenchedTest> theirs;
};

Status add_round(const Round& round, std::vector<PeerComparison>& all) {
  if (all.empty()) {
    for (const BenchedTest& row : round.ours) {
      if (std::ranges::find(all, row.test, &PeerComparison::test) != all.end()) continue;
      all.push_back({.test = row.test,
                     .model_type = row.model_type,
                     .commit = row.commit,
                     .bytes_per_token = row.bytes_per_token});
    }
  }
  for (PeerComparison& comparison : all) {
    const auto ours = std::ranges::find(round.ours, comparison.test, &BenchedTest::test);
    const auto theirs = std::ranges::find(round.theirs, comparison.test, &BenchedTest::test);
    if (ours == round.ours.end()) return fail("this run has no {}", comparison.test.name());
    if (theirs == round.theirs.end()) {
      return fail("the peer has not measured {}", comparison.test.name());
    }
    comparison.ours.push_back(ours->tokens_per_s);
    comparison.theirs.push_back(theirs->tokens_per_s);
    comparison.bandwidths_gbps.push_back(ours->bandwidth_gbps);
    comparison.peer_commit = theirs->commit;
  }
  return {};
}

void tell(size_t round, const PeerPlan& plan, std::string_view side) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "round %zu of %zu: %s\n", round + 1, plan.n_rounds,
               std::string(side).c_str());
}

std::string median_and_range(const std::vector<double>& values, int decimals) {
  return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", median_of(values), decimals,
                     std::ranges::min(values), decimals, std::ranges::max(values), decimals);
}

double gbps_of(const PeerComparison& c) { return c.bytes_per_token * median_of(c.ours) * 1e-9; }

double percent_of(const PeerComparison& c) {
  const double bandwidth = median_of(c.bandwidths_gbps);
  return bandwidth > 0 ? 100 * gbps_of(c) / bandwidth : 0;
}

}  // namespace

void add_peer_options(CLI::App& command, PeerOptions& options) {
  command.add_option("--peer", options.program,
                     "A llama-bench, or another build of this program, that runs the same in turn: "
                     "-r rounds of A B B A");
  command.add_option("--peer-arg", options.arguments,
                     "One more argument for the peer alone (--peer-arg=-fa --peer-arg=on)");
}

Result<PeerKind> recognise_peer(const std::string& program) {
  const std::vector<std::string> command = {program, "--version"};
  const Result<os::ChildAnswer> answer = os::ask_child(command, kMaxAnswerBytes);
  if (!answer) return fail(Error(answer.error()).with("--peer"));
  return answer->exit_code == 0 && is_bare_version(answer->out) ? PeerKind::kGodwit
                                                                : PeerKind::kLlamaBench;
}

Result<std::vector<BenchedTest>> parse_bench_rows(std::string_view text) {
  std::vector<BenchedTest> rows;
  while (!text.empty()) {
    const bool is_list = text.starts_with('[');
    const size_t end = is_list ? text.rfind(']') : text.find('\n');
    const std::string_view part = text.substr(0, is_list && end != text.npos ? end + 1 : end);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (!is_list && !part.starts_with('{')) continue;
    const json parsed = json::parse(part, nullptr, false);
    for (const json& row : is_list&& parsed.is_array() ? parsed : json::array({parsed})) {
      Result<BenchedTest> read = parse_row(row, part);
      if (!read) return fail(std::move(read).error());
      rows.push_back(*std::move(read));
    }
  }
  if (rows.empty()) return fail("printed no rows of a bench");
  return rows;
}

std::vector<double> PeerComparison::ratios() const {
  std::vector<double> found;
  for (size_t i = 0; i < ours.size(); ++i) found.push_back(ours[i] / theirs[i]);
  return found;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  constexpr auto kLeftOut =
      std::to_array<std::string_view>({"help", "model", "threads", "repetitions", "output", "json",
                                       "plot", "progress", "peer", "peer-arg"});
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    if (std::ranges::find(kLeftOut, name) != kLeftOut.end() || name.starts_with("hf-")) continue;
    for (const std::string& value : option->results()) {
      flags.push_back(fmt::format("--{}={}", name, value));
    }
  }
  return flags;
}

std::vector<std::string> own_command(const PeerPlan& plan, const std::string& program) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), plan.words.begin(), plan.words.end());
  command.insert(command.end(), plan.flags.begin(), plan.flags.end());
  for (const std::string& word :
       {std::string("--model=") + plan.model, fmt::format("--threads={}", plan.n_threads),
        std::string("--repetitions=1"), std::string("--output=jsonl")}) {
    command.push_back(word);
  }
  return command;
}

std::vector<std::string> llama_bench_command(const PeerPlan& plan) {
  std::vector<std::string> command = {plan.peer.program, "-m", plan.model};
  const auto add = [&](const char* flag, const std::string& value) {
    command.emplace_back(flag);
    command.push_back(value);
  };
  add("-p", fmt::format("{}", fmt::join(plan.lists.prompts, ",")));
  add("-n", fmt::format("{}", fmt::join(plan.lists.generations, ",")));
  for (const std::string& pair : plan.lists.prompt_gens) add("-pg", pair);
  // Older ones know neither depths nor JSON lines.
  if (plan.lists.depths != std::vector<size_t>{0}) {
    add("-d", fmt::format("{}", fmt::join(plan.lists.depths, ",")));
  }
  add("-t", fmt::format("{}", plan.n_threads));
  if (plan.chunk_tokens != 512) add("-ub", fmt::format("{}", plan.chunk_tokens));
  if (plan.k_type != "f16") add("-ctk", plan.k_type);
  if (plan.v_type != "f16") add("-ctv", plan.v_type);
  add("-r", "1");
  add("-o", "json");
  return command;
}

Result<std::vector<PeerComparison>> compare_with_peer(const PeerPlan& plan) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) return fail("--peer: this program cannot find itself: {}", unknown.message());
  const Result<PeerKind> kind = recognise_peer(plan.peer.program);
  if (!kind) return fail(kind.error());
  const std::vector<std::string> ours = own_command(plan, self.string());
  std::vector<std::string> theirs =
      *kind == PeerKind::kGodwit ? own_command(plan, plan.peer.program) : llama_bench_command(plan);
  theirs.insert(theirs.end(), plan.peer.arguments.begin(), plan.peer.arguments.end());

  std::vector<PeerComparison> all;
  for (size_t i = 0; i < plan.n_rounds; ++i) {
    std::array<Round, 2> rounds;  // A B, then B A
    for (const auto& [n, own] : {std::pair{0, true}, {0, false}, {1, false}, {1, true}}) {
      tell(i, plan, own ? "this program" : "peer");
      Result<std::vector<BenchedTest>> rows = run_side(own ? ours : theirs);
      if (!rows) return fail(std::move(rows).error());
      Round& round = rounds[static_cast<size_t>(n)];
      (own ? round.ours : round.theirs) = *std::move(rows);
    }
    for (const Round& round : rounds) {
      if (Status s = add_round(round, all); !s) return fail(s.error());
    }
  }
  return all;
}

std::vector<ReportColumn> peer_columns() {
  return {{"model", 26, kLeft},
          {"threads", 7},
          {"test", 16},
          {"t/s (range)", 24},
          {"peer t/s (range)", 24},
          {"ratio", 6},
          {"range", 11},
          {"GB/s", 7},
          {"% bw", 6}};
}

ReportRow peer_row(const PeerPlan& plan, const PeerComparison& c) {
  const std::vector<double> ratios = c.ratios();
  const double ratio = median_of(ratios);
  const double least = std::ranges::min(ratios);
  const double most = std::ranges::max(ratios);
  return {.cells = {c.model_type, fmt::format("{}", plan.n_threads), c.test.name(),
                    median_and_range(c.ours, 1), median_and_range(c.theirs, 1),
                    fmt::format("{:.2f}", ratio), fmt::format("{:.2f}-{:.2f}", least, most),
                    fmt::format("{:.2f}", gbps_of(c)), fmt::format("{:.1f}", percent_of(c))},
          .json = {{"build_commit", c.commit},
                   {"peer", plan.peer.program},
                   {"peer_build_commit", c.peer_commit},
                   {"cpu_info", std::string(processor_name())},
                   {"model_filename", plan.model},
                   {"model_type", c.model_type},
                   {"n_threads", plan.n_threads},
                   {"type_k", plan.k_type},
                   {"type_v", plan.v_type},
                   {"n_prompt", c.test.n_prompt},
                   {"n_gen", c.test.n_gen},
                   {"n_depth", c.test.n_depth},
                   {"test_time", bench_time()},
                   {"avg_ts", median_of(c.ours)},
                   {"peer_avg_ts", median_of(c.theirs)},
                   {"ratio", ratio},
                   {"ratio_min", least},
                   {"ratio_max", most},
                   {"samples_ts", c.ours},
                   {"peer_samples_ts", c.theirs},
                   {"ratios", ratios},
                   {"bytes_per_token", c.bytes_per_token},
                   {"gbps", gbps_of(c)},
                   {"measured_bandwidth_gbps", median_of(c.bandwidths_gbps)},
                   {"percent_of_bandwidth", percent_of(c)}}};
}

Status bench_beside_peer(std::vector<PeerPlan> plans, BenchFormat format) {
  Report report(format, peer_columns());
  for (const PeerPlan& plan : plans) {
    const Result<std::vector<PeerComparison>> found = compare_with_peer(plan);
    if (!found) return fail(found.error());
    for (const PeerComparison& comparison : *found) show(report.add(peer_row(plan, comparison)));
  }
  show(report.end(fmt::format(
      "{}, KV {}/{}; commit {}; medians of runs in the order A B B A; ratios of neighbours",
      processor_name(), plans.front().k_type, plans.front().v_type, build_commit())));
  return {};
}

Result<PeerPlan> peer_plan(const PeerOptions& peer, const ModelOptions& model,
                           const CLI::App& command) {
  const Result<engine::EngineSettings> settings = engine_settings(model);
  if (!settings) return fail(settings.error());
  PeerPlan plan;
  plan.peer = peer;
  plan.flags = flags_of(command);
  plan.model = settings->model.string();
  plan.n_threads = settings->n_threads != 0 ? settings->n_threads : available_cores();
  plan.chunk_tokens = settings->chunk_tokens;
  plan.k_type = kv_type_name(settings->k_type);
  plan.v_type = kv_type_name(settings->v_type);
  return plan;
}

}  // namespace godwit::apps
