#include "apps/quantize.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/model_path.h"
#include "apps/quantize_model.h"
#include "gguf/shard_name.h"
#include "gguf/value.h"
#include "os/cpu_features.h"
#include "os/topology.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

constexpr double kMiB = 0x1p20;
constexpr int kInterruptedExit = 130;

// The command line as it came.
struct Flags {
  std::vector<std::string> positionals;  // IN [OUT] TYPE [THREADS]
  std::optional<size_t> threads;
  bool pure = false;
  bool leave_output = false;
  bool allow_requantize = false;
  std::optional<std::string> output_type;
  std::optional<std::string> embedding_type;
  std::vector<std::string> tensor_types;
  bool dry_run = false;
  bool verbose = false;
  bool as_json = false;
};

struct Job {
  std::filesystem::path input;
  std::filesystem::path output;
  size_t n_threads = 1;
  QuantizeOptions options;
};

Result<size_t> parse_threads(const std::string& text) {
  size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n > 4096) {
    return fail("expected a number of threads from 0 to 4096, found '{}'", text);
  }
  return n;
}

Result<FileType> parse_file_type(const std::string& text) {
  const FileType* type = find_file_type(text);
  if (type == nullptr) return fail("expected one of {}, found '{}'", file_type_names(), text);
  return *type;
}

// IN TYPE, IN OUT TYPE, each with or without THREADS.
Status parse_positionals(const Flags& flags, Job& job) {
  const std::vector<std::string>& words = flags.positionals;
  auto input = resolve_model(words[0]);
  if (!input) return fail(std::move(input).error());
  job.input = *std::move(input);
  const bool named = find_file_type(words[1]) == nullptr;
  const size_t type_at = named ? 2 : 1;
  if (words.size() <= type_at) {
    return fail("expected a type after the output's name: one of {}", file_type_names());
  }
  auto type = parse_file_type(words[type_at]);
  if (!type) return fail(std::move(type).error());
  job.options.file_type = *type;
  job.output = named ? std::filesystem::path(words[1])
                     : job.input.parent_path() / fmt::format("ggml-model-{}.gguf", type->name);
  if (words.size() > type_at + 2) {
    return fail("expected IN [OUT] TYPE [THREADS], found '{}' as well", words[type_at + 2]);
  }
  job.n_threads = flags.threads.value_or(0);
  if (words.size() == type_at + 2) {
    auto threads = parse_threads(words[type_at + 1]);
    if (!threads) return fail(std::move(threads).error());
    job.n_threads = *threads;
  }
  if (job.n_threads == 0) job.n_threads = available_cores();
  return {};
}

Result<Job> parse_job(const Flags& flags) {
  Job job;
  if (auto parsed = parse_positionals(flags, job); !parsed) return fail(std::move(parsed).error());
  QuantizeOptions& options = job.options;
  if (flags.pure) options.mode = MixMode::kPure;
  if (flags.leave_output) options.output = OutputTensor::kLeave;
  if (flags.allow_requantize) options.requantise = Requantise::kAllow;
  if (flags.output_type) {
    auto type = parse_encodable_type("--output-tensor-type", *flags.output_type);
    if (!type) return fail(std::move(type).error());
    options.output_type = *type;
  }
  if (flags.embedding_type) {
    auto type = parse_encodable_type("--token-embedding-type", *flags.embedding_type);
    if (!type) return fail(std::move(type).error());
    options.embedding_type = *type;
  }
  for (const std::string& text : flags.tensor_types) {
    auto rule = parse_tensor_type_rule(text);
    if (!rule) return fail(std::move(rule).error());
    options.rules.push_back(*std::move(rule));
  }
  // The encoders choose their instruction set themselves and silently.
  if (auto isa = chosen_isa(); !isa) return fail(std::move(isa).error());
  return job;
}

// Renaming over a file that is mapped would be safe, but nobody means it.
Status check_output(const gguf::File& file, const Job& job) {
  std::error_code ignored;
  const auto shard = gguf::parse_shard_name(file.path());
  for (uint32_t i = 1; i <= file.n_shards(); ++i) {
    const auto input = shard ? shard->sibling(i) : file.path();
    if (std::filesystem::equivalent(input, job.output, ignored)) {
      return fail("the output is the input: '{}'", job.output.string());
    }
  }
  if (std::filesystem::is_directory(job.output, ignored)) {
    return fail("expected a file name for the output, found the folder '{}'", job.output.string());
  }
  return {};
}

std::string shape_text(const gguf::Tensor& tensor) {
  std::string text;
  for (const uint64_t n : tensor.dims) text += fmt::format("{}{}", text.empty() ? "" : " x ", n);
  return text;
}

// "[  3/290] blk.0.ffn_down.weight  1536 x 576  F32 -> Q6_K  3.38 -> 0.69 MiB".
std::string line_of(const QuantizePlan& plan, size_t index, std::optional<double> error) {
  const PlannedTensor& tensor = plan.tensors[index];
  const gguf::Tensor& source = *tensor.source;
  std::string line = fmt::format("[{:>4}/{}] {:<36} {:>16}  {}", index + 1, plan.tensors.size(),
                                 source.name, shape_text(source), tensor_type_name(source.type));
  if (tensor.type == source.type) {
    line += fmt::format(", {:.2f} MiB", static_cast<double>(source.bytes) / kMiB);
  } else {
    line += fmt::format(" -> {}, {:.2f} -> {:.2f} MiB", tensor_type_name(tensor.type),
                        static_cast<double>(source.bytes) / kMiB,
                        static_cast<double>(tensor.bytes()) / kMiB);
  }
  if (error) line += fmt::format(", RMS error {:.4g} %", 100 * *error);
  if (tensor.unfitting) {
    line += fmt::format(" (rows of {} are no whole {} blocks)", source.cols(),
                        tensor_type_name(*tensor.unfitting));
  }
  return one_line(line) + "\n";
}

json tensor_json(const PlannedTensor& tensor, std::optional<double> error) {
  json entry = {{"name", tensor.source->name},
                {"shape", tensor.source->dims},
                {"from", tensor_type_name(tensor.source->type)},
                {"to", tensor_type_name(tensor.type)},
                {"bytes_before", tensor.source->bytes},
                {"bytes_after", tensor.bytes()}};
  if (tensor.unfitting) entry["instead_of"] = tensor_type_name(*tensor.unfitting);
  if (error) entry["relative_rms_error"] = *error;
  return entry;
}

size_t n_unfitting(const QuantizePlan& plan) {
  return static_cast<size_t>(std::ranges::count_if(
      plan.tensors, [](const PlannedTensor& tensor) { return tensor.unfitting.has_value(); }));
}

json summary_json(const QuantizePlan& plan, const Job& job, json tensors) {
  return {{"input", job.input.string()},
          {"output", job.output.string()},
          {"type", job.options.file_type.name},
          {"file_type", plan.file_type},
          {"bytes_before", plan.bytes_before()},
          {"bytes_after", plan.bytes_after()},
          {"bits_per_weight", plan.bits_per_weight()},
          {"fallbacks", n_unfitting(plan)},
          {"tensors", std::move(tensors)}};
}

std::string summary_line(const QuantizePlan& plan, const Job& job) {
  std::string line = fmt::format("{:.2f} -> {:.2f} MiB, {:.2f} bits per weight as {}",
                                 static_cast<double>(plan.bytes_before()) / kMiB,
                                 static_cast<double>(plan.bytes_after()) / kMiB,
                                 plan.bits_per_weight(), job.options.file_type.name);
  if (const size_t n = n_unfitting(plan); n > 0) {
    line +=
        fmt::format("; {} of {} tensors have another type, since their rows are no whole blocks", n,
                    plan.tensors.size());
  }
  return line;
}

Status write_model(const gguf::File& file, const QuantizePlan& plan, const Job& job,
                   const Flags& flags, json& tensors) {
  const InterruptGuard guard;
  const auto wrote = [&](size_t i, std::optional<double> error) {
    std::fputs(line_of(plan, i, error).c_str(), stderr);
    if (flags.as_json) tensors.push_back(tensor_json(plan.tensors[i], error));
  };
  auto written = write_quantized(
      file, plan,
      {.n_threads = job.n_threads,
       .measure = flags.verbose || flags.as_json ? Measure::kError : Measure::kNothing,
       .wrote = wrote,
       .interrupted = InterruptGuard::interrupted},
      job.output);
  if (!written && InterruptGuard::interrupted()) {
    std::fputs("interrupted: no file was written\n", stderr);
    throw CLI::RuntimeError(kInterruptedExit);
  }
  return written;
}

Status quantize(const Flags& flags) {
  const auto job = parse_job(flags);
  if (!job) return fail(job.error());
  const auto file = gguf::File::open(job->input);
  if (!file) return fail(file.error());
  if (!flags.dry_run) {
    if (auto usable = check_output(*file, *job); !usable) return usable;
  }
  const auto plan = plan_quantize(*file, job->options);
  if (!plan) return fail(plan.error());
  json tensors = json::array();
  const auto start = std::chrono::steady_clock::now();
  if (!flags.dry_run) {
    if (auto done = write_model(*file, *plan, *job, flags, tensors); !done) return done;
  } else {
    for (size_t i = 0; i < plan->tensors.size(); ++i) {
      if (flags.as_json) {
        tensors.push_back(tensor_json(plan->tensors[i], std::nullopt));
      } else {
        std::fputs(line_of(*plan, i, std::nullopt).c_str(), stdout);
      }
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (flags.as_json) {
    json summary = summary_json(*plan, *job, std::move(tensors));
    if (!flags.dry_run) summary["seconds"] = seconds.count();
    fmt::print("{}\n", summary.dump(-1, ' ', false, json::error_handler_t::replace));
    return {};
  }
  if (flags.dry_run) {
    fmt::print("{}; nothing was written\n", summary_line(*plan, *job));
  } else {
    fmt::print(stderr, "wrote {} in {:.1f} s: {}\n", one_line(job->output.string()),
               seconds.count(), summary_line(*plan, *job));
  }
  return {};
}

void add_type_options(CLI::App& command, Flags& flags) {
  command.add_flag("--pure", flags.pure, "one type for all matrices, instead of a mix");
  command.add_flag("--leave-output-tensor", flags.leave_output,
                   "keep output.weight in the type it has");
  command.add_option("--output-tensor-type", flags.output_type, "type of output.weight");
  command.add_option("--token-embedding-type", flags.embedding_type, "type of token_embd.weight");
  command
      .add_option("--tensor-type", flags.tensor_types,
                  "REGEX=TYPE: type of the matrices in whose name the expression is found; may be "
                  "repeated, the first match counts")
      ->allow_extra_args(false);
  command.add_flag("--allow-requantize", flags.allow_requantize,
                   "also quantise what is quantised already, which loses more");
}

}  // namespace

void add_quantize_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("quantize", "write a model with smaller types, as llama-quantize does");
  const auto flags = std::make_shared<Flags>();
  command
      ->add_option("files", flags->positionals,
                   "the model (of a split one the first shard), the file to write (ggml-model-"
                   "TYPE.gguf beside the model), its type: " +
                       file_type_names())
      ->option_text("IN [OUT] TYPE [THREADS]")
      ->expected(2, 5)
      ->required();
  command->add_option("-t,--threads", flags->threads, "threads (all cores)");
  add_type_options(*command, *flags);
  command->add_flag("--dry-run", flags->dry_run, "say what each tensor would become, and stop");
  command->add_flag("-v,--verbose", flags->verbose,
                    "measure each tensor's RMS error, relative to the RMS of its weights");
  command->add_flag("--json", flags->as_json, "a summary on stdout, with errors");
  command->footer(
      "Examples:\n  godwit quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M\n"
      "  godwit quantize model-f16.gguf Q4_K_M --dry-run\n"
      "  godwit quantize model-f16.gguf small.gguf IQ2_XXS --tensor-type ffn_down=q4_k -t 8\n"
      "An existing output is replaced when the new one is complete, never before. Vectors and\n"
      "norms keep their type. docs/QUANTIZE.md compares the types.");
  command->callback([flags] { finish(quantize(*flags)); });
}

}  // namespace godwit::apps
