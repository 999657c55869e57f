#include "apps/bench.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

#include "apps/bench_plan.h"
#include "apps/bench_report.h"
#include "apps/command.h"
#include "apps/model_options.h"
#include "base/random.h"
#include "engine/expert_report.h"
#include "engine/expert_tensors.h"
#include "engine/session.h"
#include "os/cpu_features.h"
#include "program/traffic.h"

namespace godwit::apps {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<std::string> models;
  BenchLists lists;
  size_t repetitions = 5;
  std::string format = "md";
  bool progress = false;
  std::string route_trace;
};

std::string model_type(const engine::Engine& engine) {
  std::map<TensorType, uint64_t> weights;
  uint64_t all = 0;
  for (const gguf::Tensor& tensor : engine.file().tensors()) {
    weights[tensor.type] += tensor.rows() * tensor.cols();
    all += tensor.rows() * tensor.cols();
  }
  TensorType most = TensorType::kF32;
  for (const auto& [type, n] : weights) {
    if (n > weights[most]) most = type;
  }
  return fmt::format("{} {:.0f}M {}", engine.program().architecture,
                     static_cast<double>(all) * 1e-6, tensor_type_name(most));
}

uint64_t n_params(const engine::Engine& engine) {
  uint64_t n = 0;
  for (const gguf::Tensor& tensor : engine.file().tensors()) n += tensor.rows() * tensor.cols();
  return n;
}

BenchSetting setting_of(const engine::Engine& engine, const BenchOptions& options) {
  const engine::EngineSettings& s = engine.settings();
  return {.model_path = s.model.string(),
          .model_type = model_type(engine),
          .model_bytes = engine.file().total_bytes(),
          .n_params = n_params(engine),
          .backend = options.model.backend,
          .processor =
              s.backend == "cuda" ? engine.backend().describe() : std::string(processor_name()),
          .isa = std::string(isa_name(chosen_isa().value_or(Isa::kGeneric))),
          .commit = GODWIT_COMMIT,
          .n_threads = s.n_threads,
          .chunk_tokens = s.chunk_tokens,
          .k_type = kv_type_name(s.k_type),
          .v_type = kv_type_name(s.v_type),
          .bandwidth_gbps = engine::read_bandwidth_gbps(engine.backend(), s.n_threads),
          .expert_cache = engine::expert_file_bytes(engine.experts()) == 0
                              ? ""
                              : expert_cache_name(*s.expert_cache),
          .route_trace = s.route_trace.string()};
}

class Bench {
 public:
  Bench(engine::Engine& engine, engine::Session session)
      : engine_(engine), session_(std::move(session)) {}

  // One warm-up, then the repetitions.
  Result<BenchRow> measure(const BenchTest& test, size_t repetitions) {
    BenchRow row{.test = test,
                 .time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                 .samples_ns = {},
                 .bytes_per_token = bytes_per_token(test),
                 .experts = {}};
    if (Status s = warm_up(test); !s) return fail(s.error());
    timed_experts_ = {};
    for (size_t i = 0; i < repetitions; ++i) {
      const Result<double> ns = run(test);
      if (!ns) return fail(ns.error());
      row.samples_ns.push_back(*ns);
    }
    row.experts = std::move(timed_experts_);
    return row;
  }

 private:
  TokenId token(size_t i) const {
    return {static_cast<int32_t>(random_bits(1, i) % engine_.program().n_vocab)};
  }
  std::vector<TokenId> tokens(size_t n) const {
    std::vector<TokenId> ids;
    for (size_t i = 0; i < n; ++i) ids.push_back(token(i));
    return ids;
  }

  Status warm_up(const BenchTest& test) {
    const BenchTest brief{.n_prompt = std::min<size_t>(test.n_prompt, 32),
                          .n_gen = std::min<size_t>(test.n_gen, 2),
                          .n_depth = 0};
    const Result<double> ns = run(brief);
    if (!ns) return fail(ns.error());
    return {};
  }

  // Nanoseconds of the prompt and the steps; filling the depth is not counted.
  Result<double> run(const BenchTest& test) {
    session_.reset();
    const std::vector<TokenId> ids = tokens(test.n_depth + test.n_prompt);
    if (test.n_depth > 0) {
      if (Status s = session_.set_prompt(std::span(ids).first(test.n_depth), {}); !s) {
        return fail(s.error());
      }
    }
    const engine::ExpertReport before = engine::expert_report(engine_);
    const auto start = std::chrono::steady_clock::now();
    if (test.n_prompt > 0) {
      if (Status s = session_.set_prompt(ids, {}); !s) return fail(s.error());
    }
    for (size_t i = 0; i < test.n_gen; ++i) {
      const TokenId next = token(ids.size() + i);
      const Status s =
          session_.tokens().empty() ? session_.set_prompt({&next, 1}, {}) : session_.append(next);
      if (!s) return fail(s.error());
    }
    const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
    timed_experts_.add(engine::expert_report(engine_).since(before));
    return ns.count();
  }

  double bytes_per_token(const BenchTest& test) const {
    program::TrafficInput input{.position = test.n_depth,
                                .n_rows = 1,
                                .k_type = engine_.settings().k_type,
                                .v_type = engine_.settings().v_type};
    uint64_t bytes = 0;
    const size_t chunk = engine_.settings().chunk_tokens;
    for (size_t done = 0; done < test.n_prompt;) {
      input.n_rows = std::min(chunk - input.position % chunk, test.n_prompt - done);
      bytes += program::traffic_of(engine_.program(), input).total();
      done += input.n_rows;
      input.position += input.n_rows;
    }
    input.n_rows = 1;
    for (size_t i = 0; i < test.n_gen; ++i, ++input.position) {
      bytes += program::traffic_of(engine_.program(), input).total();
    }
    return static_cast<double>(bytes) / static_cast<double>(test.n_prompt + test.n_gen);
  }

  engine::Engine& engine_;
  engine::Session session_;
  engine::ExpertReport timed_experts_;  // of the repetitions so far
};

// Rows as they are measured, on stdout.
class Table {
 public:
  explicit Table(BenchFormat format) : format_(format) {}

  void add(const BenchSetting& setting, const BenchRow& row) {
    if (empty_) std::printf("%s", bench_header(format_, setting).c_str());
    std::printf("%s", bench_row(format_, setting, row, empty_).c_str());
    std::fflush(stdout);
    empty_ = false;
    footer_ = bench_footer(format_, setting);
  }
  void finish() const { std::printf("%s", footer_.c_str()); }

 private:
  BenchFormat format_;
  bool empty_ = true;
  std::string footer_;
};

Status bench_model(const BenchOptions& options, const std::vector<BenchTest>& tests, Table& table) {
  Result<engine::EngineSettings> settings = engine_settings(options.model);
  if (!settings) return fail(std::move(settings).error());
  settings->route_trace = options.route_trace;
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(*settings);
  if (!engine) return fail(engine.error());
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  const BenchSetting setting = setting_of(**engine, options);
  Bench bench(**engine, std::move(*session));
  // Who sees the rows come needs no more; a terminal beside a redirected table is told.
  const bool tells = options.progress || (isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0);
  for (const BenchTest& test : tests) {
    if (tells) std::fprintf(stderr, "%s: %s\n", setting.model_type.c_str(), test.name().c_str());
    const Result<BenchRow> row = bench.measure(test, options.repetitions);
    if (!row) return fail(row.error());
    table.add(setting, *row);
  }
  return {};
}

Status bench(BenchOptions& options) {
  const Result<BenchFormat> format = parse_bench_format(options.format);
  if (!format) return fail(format.error());
  const Result<std::vector<BenchTest>> tests = plan_bench(options.lists);
  if (!tests) return fail(tests.error());
  if (options.model.n_context == 0) {
    for (const BenchTest& test : *tests) {
      options.model.n_context = std::max<uint64_t>(options.model.n_context, test.n_positions());
    }
  }
  if (options.models.empty()) options.models.emplace_back();  // of a repository
  Table table(*format);
  for (const std::string& model : options.models) {
    options.model.model = model;
    if (Status s = bench_model(options, *tests, table); !s) return s;
  }
  table.finish();
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Prompt and decode speed, as llama-bench");
  add_model_options(*command, options->model);
  command->remove_option(command->get_option("--model"));
  CLI::Option* files =
      command->add_option("-m,--model", options->models, "GGUF files or names of pulled models")
          ->delimiter(',');
  command->get_option("--hf-repo")->excludes(files);
  const auto list = [&](const std::string& flags, auto& values, const std::string& help) {
    command->add_option(flags, values, help)->delimiter(',')->capture_default_str();
  };
  list("-p,--n-prompt", options->lists.prompts, "Prompt lengths; 0: none");
  list("-n,--n-gen", options->lists.generations, "Numbers of tokens to decode; 0: none");
  command->add_option("--prompt-gen", options->lists.prompt_gens,
                      "(-pg) Prompt and decode timed as one: PROMPT,GENERATED");
  list("-d,--n-depth", options->lists.depths, "Positions filled before the clock starts");
  command->add_option("-r,--repetitions", options->repetitions, "Repetitions of each test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("-o,--output", options->format, "md, csv, json or jsonl")
      ->capture_default_str();
  command->add_flag_callback(
      "--json", [options] { options->format = "json"; }, "The same as -o json");
  command->add_option("--route-trace", options->route_trace,
                      "Experts as a recorded trace chose them, not as the routers do; to compare "
                      "--expert-cache-mib at a known skew");
  command->add_flag("--progress", options->progress, "Say on stderr what is being measured");
  command->footer("Example:\n  godwit bench -m smollm2 -p 512 -n 64 -d 0,4096 -r 3");
  command->callback([options] { finish(bench(*options)); });
}

}  // namespace godwit::apps
