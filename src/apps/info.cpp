#include "apps/info.h"

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/model_options.h"
#include "base/log.h"
#include "engine/expert_tensors.h"
#include "engine/memory_plan.h"
#include "engine/planned_backend.h"
#include "model/registry.h"
#include "os/cpu_features.h"
#include "os/memory.h"
#include "os/topology.h"
#include "program/print.h"
#include "program/traffic.h"
#include "tokenizer/tokenizer.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

constexpr size_t kShownElements = 6;
constexpr size_t kShownCharacters = 100;

struct InfoOptions {
  ModelOptions model;
  bool tensors = false;
  bool steps = false;
  bool as_json = false;
};

struct TypeShare {
  uint64_t tensors = 0;
  uint64_t weights = 0;
  uint64_t bytes = 0;
};

// What `info` tells, computed once and printed in either form.
struct Facts {
  std::map<std::string_view, TypeShare> types;
  engine::EngineSettings settings;
  engine::MemoryPlan plan;
  program::Traffic at_start;  // one token at position 0
  program::Traffic at_depth;  // one token at the last position of the context
  double bandwidth_gbps = 0;
  uint64_t expert_file_bytes = 0;  // 0: no routed experts
};

// Metadata strings are the file's: printable ASCII and UTF-8 pass, controls are spelled out.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Cut between characters: up to three continuation bytes still pass.
    const bool within = (byte & 0xc0) == 0x80 && out.size() < kShownCharacters + 3;
    if (out.size() >= kShownCharacters && !within) return out + "...";
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string array_text(const gguf::Array& array) {
  std::string out = fmt::format("{} elements [", array.size());
  std::visit(
      [&](const auto& values) {
        for (size_t i = 0; i < values.size() && i < kShownElements; ++i) {
          if (i > 0) out += ", ";
          using Element = typename std::decay_t<decltype(values)>::value_type;
          if constexpr (std::is_same_v<Element, std::string>) {
            out += '"' + printable(values[i]) + '"';
          } else {
            out += fmt::format("{}", static_cast<Element>(values[i]));
          }
        }
      },
      array.values);
  return out + (array.size() > kShownElements ? ", ...]" : "]");
}

std::string value_text(const gguf::Value& value) {
  return std::visit(
      [](const auto& content) -> std::string {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, std::string>) {
          return '"' + printable(content) + '"';
        } else if constexpr (std::is_same_v<Content, gguf::Array>) {
          return array_text(content);
        } else {
          return fmt::format("{}", content);
        }
      },
      value.content);
}

// One token at the last position of the context.
program::TrafficInput input_at_depth(const Facts& facts) {
  return {.position = facts.plan.n_context - 1,
          .n_rows = 1,
          .k_type = facts.settings.k_type,
          .v_type = facts.settings.v_type};
}

Result<Facts> gather(const gguf::File& file, const model::Model& model,
                     const engine::EngineSettings& settings) {
  Facts facts;
  facts.settings = settings;
  for (const gguf::Tensor& tensor : file.tensors()) {
    TypeShare& share = facts.types[tensor_type_name(tensor.type)];
    ++share.tensors;
    share.weights += tensor.rows() * tensor.cols();
    share.bytes += tensor.bytes;
  }
  if (facts.settings.n_threads == 0) facts.settings.n_threads = available_cores();
  facts.settings.max_logit_rows = 1;
  const Result<experts::ExpertSource> experts = engine::find_experts(file, model.program);
  if (!experts) return fail(experts.error());
  facts.expert_file_bytes = engine::expert_file_bytes(*experts);
  // A plan counts what is resident already: the vocabulary too, as when the model is run.
  const Result<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::load(file);
  if (!tokenizer) log::debug(tokenizer.error().message);
  const Result<engine::PlannedBackend> planned = engine::plan_backend(
      facts.settings, {.program = model.program, .experts = *experts}, available_memory_bytes());
  if (!planned) return fail(planned.error());
  facts.plan = planned->plan;
  facts.settings.expert_cache = planned->expert_cache;
  program::TrafficInput input = input_at_depth(facts);
  facts.at_depth = program::traffic_of(model.program, input);
  input.position = 0;
  facts.at_start = program::traffic_of(model.program, input);
  facts.bandwidth_gbps = engine::read_bandwidth_gbps(*planned->backend, facts.settings.n_threads);
  return facts;
}

double floor_ms(const program::Traffic& traffic, double gbps) {
  return gbps > 0 ? static_cast<double>(traffic.total()) / gbps * 1e-6 : 0.0;
}

void print_floor(const char* where, const program::Traffic& traffic, double gbps) {
  const double ms = floor_ms(traffic, gbps);
  std::printf("  %-22s %s weights + %s KV: %.3f ms, %.1f tok/s at most\n", where,
              engine::format_bytes(traffic.weight_bytes).c_str(),
              engine::format_bytes(traffic.kv_read_bytes + traffic.kv_write_bytes).c_str(), ms,
              ms > 0 ? 1000.0 / ms : 0.0);
}

void print_text(const gguf::File& file, const model::Model& model, const Facts& facts,
                const InfoOptions& options) {
  const program::Program& program = model.program;
  std::printf("%s: GGUF v%u, %zu shard(s), %s\n\nmetadata\n", file.path().c_str(), file.version(),
              file.n_shards(), engine::format_bytes(file.total_bytes()).c_str());
  for (const gguf::KeyValue& entry : file.metadata()) {
    std::printf("  %-44s %s\n", printable(entry.key).c_str(), value_text(entry.value).c_str());
  }
  std::printf("\ntensors by type\n");
  for (const auto& [type, share] : facts.types) {
    std::printf("  %-8s %5llu tensors %9.1f M weights  %s\n", std::string(type).c_str(),
                static_cast<unsigned long long>(share.tensors),
                static_cast<double>(share.weights) * 1e-6,
                engine::format_bytes(share.bytes).c_str());
  }
  if (options.tensors) {
    std::printf("\ntensors\n");
    for (const gguf::Tensor& tensor : file.tensors()) {
      std::printf("  %-40s %-8s [%s] at %llu of shard %u\n", printable(tensor.name).c_str(),
                  std::string(tensor_type_name(tensor.type)).c_str(),
                  fmt::format("{}", fmt::join(tensor.dims, ", ")).c_str(),
                  static_cast<unsigned long long>(tensor.file_offset), tensor.shard + 1);
    }
  }
  std::printf("\nprogram: %s, %u layers, %zu steps, vocabulary %llu, trained context %llu\n",
              program.architecture.c_str(), program.n_layers, program.main.size(),
              static_cast<unsigned long long>(program.n_vocab),
              static_cast<unsigned long long>(program.trained_context));
  if (options.steps) {
    std::printf("%s", program::print(program, input_at_depth(facts)).c_str());
  }
  const engine::MemoryPlan& plan = facts.plan;
  std::printf("\nmemory for %llu positions (%s, KV %s/%s)\n",
              static_cast<unsigned long long>(plan.n_context), facts.settings.backend.c_str(),
              kv_type_name(facts.settings.k_type).c_str(),
              kv_type_name(facts.settings.v_type).c_str());
  std::printf("  %s; %s available\n", engine::describe(plan, facts.expert_file_bytes).c_str(),
              engine::format_bytes(plan.available_bytes).c_str());
  if (facts.expert_file_bytes > 0) {
    std::printf("  experts by --expert-cache-mib %s\n",
                expert_cache_name(*facts.settings.expert_cache).c_str());
  }
  std::printf("\nfloor per token at the %.1f GB/s measured on %s\n", facts.bandwidth_gbps,
              std::string(processor_name()).c_str());
  print_floor("at position 0", facts.at_start, facts.bandwidth_gbps);
  print_floor(fmt::format("at position {}", plan.n_context - 1).c_str(), facts.at_depth,
              facts.bandwidth_gbps);
}

json array_json(const gguf::Array& array) {
  json first = json::array();
  std::visit(
      [&](const auto& values) {
        using Element = typename std::decay_t<decltype(values)>::value_type;
        for (size_t i = 0; i < values.size() && i < kShownElements; ++i) {
          first.push_back(static_cast<Element>(values[i]));
        }
      },
      array.values);
  return {{"size", array.size()}, {"first", first}};
}

json value_json(const gguf::Value& value) {
  return std::visit(
      [](const auto& content) -> json {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, gguf::Array>) {
          return array_json(content);
        } else {
          return content;
        }
      },
      value.content);
}

json tensors_json(const gguf::File& file) {
  json tensors = json::array();
  for (const gguf::Tensor& tensor : file.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor_type_name(tensor.type)},
                       {"dims", tensor.dims},
                       {"bytes", tensor.bytes},
                       {"offset", tensor.file_offset},
                       {"shard", tensor.shard + 1}});
  }
  return tensors;
}

json lines_json(const std::string& text) {
  json lines = json::array();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

json floor_json(uint64_t position, const program::Traffic& traffic, double gbps) {
  return {{"position", position},
          {"weight_bytes", traffic.weight_bytes},
          {"kv_bytes", traffic.kv_read_bytes + traffic.kv_write_bytes},
          {"floor_ms", floor_ms(traffic, gbps)}};
}

void print_json(const gguf::File& file, const model::Model& model, const Facts& facts,
                const InfoOptions& options) {
  json types = json::object();
  for (const auto& [type, share] : facts.types) {
    types[std::string(type)] = {
        {"tensors", share.tensors}, {"weights", share.weights}, {"bytes", share.bytes}};
  }
  json metadata = json::object();
  for (const gguf::KeyValue& entry : file.metadata()) {
    metadata[entry.key] = value_json(entry.value);
  }
  const engine::MemoryPlan& plan = facts.plan;
  json out = {{"path", file.path().string()},
              {"gguf_version", file.version()},
              {"shards", file.n_shards()},
              {"bytes", file.total_bytes()},
              {"architecture", model.program.architecture},
              {"layers", model.program.n_layers},
              {"steps", model.program.main.size()},
              {"vocabulary", model.program.n_vocab},
              {"trained_context", model.program.trained_context},
              {"metadata", metadata},
              {"types", types},
              {"memory",
               {{"context", plan.n_context},
                {"k_type", kv_type_name(facts.settings.k_type)},
                {"v_type", kv_type_name(facts.settings.v_type)},
                {"weight_bytes", plan.need.weight_bytes},
                {"expert_bytes", plan.need.expert_bytes},
                {"expert_file_bytes", facts.expert_file_bytes},
                {"expert_cache", expert_cache_name(*facts.settings.expert_cache)},
                {"kv_bytes", plan.need.kv_bytes},
                {"state_bytes", plan.need.state_bytes},
                {"scratch_bytes", plan.need.scratch_bytes},
                {"process_bytes", plan.process_bytes},
                {"resident_bytes", plan.resident()},
                {"available_bytes", plan.available_bytes}}},
              {"measured_bandwidth_gbps", facts.bandwidth_gbps},
              {"floor",
               {floor_json(0, facts.at_start, facts.bandwidth_gbps),
                floor_json(plan.n_context - 1, facts.at_depth, facts.bandwidth_gbps)}}};
  if (options.tensors) out["tensors"] = tensors_json(file);
  if (options.steps)
    out["step_list"] = lines_json(program::print(model.program, input_at_depth(facts)));
  std::printf("%s\n", out.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

Status info(const InfoOptions& options) {
  const Result<engine::EngineSettings> settings = engine_settings(options.model);
  if (!settings) return fail(settings.error());
  const Result<gguf::File> file = gguf::File::open(settings->model);
  if (!file) return fail(file.error());
  const Result<model::Model> model = model::build_model(*file);
  if (!model) return fail(model.error());
  const Result<Facts> facts = gather(*file, *model, *settings);
  if (!facts) return fail(facts.error());
  if (options.as_json) {
    print_json(*file, *model, *facts, options);
  } else {
    print_text(*file, *model, *facts, options);
  }
  return {};
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "Metadata, tensors, memory plan, floor per token");
  add_model_options(*command, options->model);
  command->add_flag("--tensors", options->tensors, "List every tensor");
  command->add_flag("--steps", options->steps, "List the program's steps with their bytes");
  command->add_flag("--json", options->as_json,
                    "One JSON object: metadata, types, memory, floor and more");
  command->footer("Example:\n  godwit info -m smollm2 -c 8192");
  command->callback([options] { finish(info(*options)); });
}

}  // namespace godwit::apps
