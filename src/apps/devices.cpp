#include "apps/devices.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "backend/cpu/kernel_table.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/registry.h"
#include "engine/memory_plan.h"
#include "os/bandwidth.h"
#include "os/cpu_features.h"
#include "os/machine.h"
#include "os/memory.h"
#include "os/topology.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

struct DevicesOptions {
  bool as_json = false;
  bool no_bandwidth = false;
};

struct DeviceFacts {
  MachineFacts machine;
  Isa isa = Isa::kGeneric;  // GODWIT_ISA considered
  size_t n_threads = 0;     // that a command would use
  uint64_t available_bytes = 0;
  double bandwidth_gbps = 0;                      // 0: not measured
  std::vector<const cpu::MatVecKernel*> kernels;  // the one chosen for each type
};

Result<DeviceFacts> gather(const DevicesOptions& options) {
  const Result<Isa> isa = chosen_isa();
  if (!isa) return fail(isa.error());
  DeviceFacts facts;
  facts.machine = machine_facts();
  facts.isa = *isa;
  facts.n_threads = available_cores();
  facts.available_bytes = available_memory_bytes();
  if (!options.no_bandwidth) {
    facts.bandwidth_gbps = measure_read_bandwidth_gbps(facts.n_threads).value_or(0.0);
  }
  for (const TensorGeometry& geometry : kTensorGeometries) {
    const cpu::MatVecKernel* kernel = cpu::find_matvec_kernel(geometry.type, facts.isa);
    if (kernel != nullptr) facts.kernels.push_back(kernel);
  }
  return facts;
}

std::string cpu_line(size_t n_threads, uint64_t total, uint64_t available) {
  return fmt::format("cpu: {}, {} threads ({}, {} free)", processor_name(), n_threads,
                     engine::format_bytes(total), engine::format_bytes(available));
}

std::string card_line(const cuda::Card& card) {
  return fmt::format("{}, sm_{}, {} SMs ({}, {} free){}{}", card.name, card.capability,
                     card.n_multiprocessors, engine::format_bytes(card.memory_bytes),
                     engine::format_bytes(card.free_bytes), card.note.empty() ? "" : "; ",
                     card.note);
}

// One line for each card, or one that says why there is none.
std::vector<std::string> cuda_lines() {
  const Result<std::vector<cuda::Card>> cards = cuda::cards();
  if (!cards) return {cards.error().message};
  std::vector<std::string> lines;
  for (const cuda::Card& card : *cards) lines.push_back("cuda: " + card_line(card));
  return lines;
}

json cuda_json() {
  json devices = json::array();
  if (const Result<std::vector<cuda::Card>> cards = cuda::cards(); cards) {
    for (const cuda::Card& card : *cards) {
      devices.push_back({{"name", card.name},
                         {"capability", card.capability},
                         {"multiprocessors", card.n_multiprocessors},
                         {"memory_bytes", card.memory_bytes},
                         {"free_bytes", card.free_bytes},
                         {"note", card.note}});
    }
  }
  return {{"built", cuda::built()}, {"devices", devices}};
}

void print_text(const DeviceFacts& facts) {
  const MachineFacts& m = facts.machine;
  std::printf("%s\n", cpu_line(facts.n_threads, m.memory_bytes, facts.available_bytes).c_str());
  std::printf("  processors  %zu logical, %zu cores, %zu sockets, %zu memory nodes; %zu usable\n",
              m.n_logical, m.n_cores, m.n_sockets, m.n_memory_nodes, facts.n_threads);
  std::printf("  features    %s\n",
              fmt::format("{}", fmt::join(processor_features(), " ")).c_str());
  for (const CacheFacts& cache : m.caches) {
    std::printf("  cache       L%u %s: %zu x %s, each for %zu processors\n", cache.level,
                cache.kind.c_str(), cache.n_caches, engine::format_bytes(cache.bytes).c_str(),
                cache.n_sharing);
  }
  std::printf("  memory      %s, %s available\n", engine::format_bytes(m.memory_bytes).c_str(),
              engine::format_bytes(facts.available_bytes).c_str());
  if (facts.bandwidth_gbps > 0) {
    std::printf("  bandwidth   %.1f GB/s read, measured with %zu threads\n", facts.bandwidth_gbps,
                facts.n_threads);
  }
  std::printf("  kernels     %s (GODWIT_ISA chooses a lower one)\n",
              std::string(isa_name(facts.isa)).c_str());
  for (const cpu::MatVecKernel* kernel : facts.kernels) {
    std::printf("    %-6s %s\n", std::string(tensor_type_name(kernel->type)).c_str(),
                std::string(kernel->name).c_str());
  }
  for (const std::string& line : cuda_lines()) std::printf("%s\n", line.c_str());
}

void print_json(const DeviceFacts& facts) {
  const MachineFacts& m = facts.machine;
  json caches = json::array();
  for (const CacheFacts& cache : m.caches) {
    caches.push_back({{"level", cache.level},
                      {"kind", cache.kind},
                      {"bytes", cache.bytes},
                      {"count", cache.n_caches},
                      {"processors_sharing", cache.n_sharing}});
  }
  json kernels = json::object();
  for (const cpu::MatVecKernel* kernel : facts.kernels) {
    kernels[std::string(tensor_type_name(kernel->type))] = kernel->name;
  }
  const json out = {
      {"cpu",
       {{"name", processor_name()},
        {"logical_processors", m.n_logical},
        {"cores", m.n_cores},
        {"sockets", m.n_sockets},
        {"memory_nodes", m.n_memory_nodes},
        {"threads", facts.n_threads},
        {"features", processor_features()},
        {"isa", isa_name(facts.isa)},
        {"kernels", kernels},
        {"caches", caches},
        {"memory_bytes", m.memory_bytes},
        {"available_bytes", facts.available_bytes},
        {"bandwidth_gbps", facts.bandwidth_gbps > 0 ? json(facts.bandwidth_gbps) : json(nullptr)}}},
      {"cuda", cuda_json()},
      {"backends", backend::backend_names()}};
  std::printf("%s\n", out.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

Status devices(const DevicesOptions& options) {
  const Result<DeviceFacts> facts = gather(options);
  if (!facts) return fail(facts.error());
  if (options.as_json) {
    print_json(*facts);
  } else {
    print_text(*facts);
  }
  return {};
}

void list_devices() {
  const std::string line =
      cpu_line(available_cores(), machine_facts().memory_bytes, available_memory_bytes());
  std::printf("Available devices:\n  %s\n", line.c_str());
  for (const std::string& cuda : cuda_lines()) std::printf("  %s\n", cuda.c_str());
}

}  // namespace

void add_devices_command(CLI::App& app) {
  auto options = std::make_shared<DevicesOptions>();
  CLI::App* command = app.add_subcommand("devices", "Processor, memory, bandwidth, kernels");
  command->add_flag("--no-bandwidth", options->no_bandwidth,
                    "Do not measure the memory's bandwidth (half a second, 256 MiB)");
  command->add_flag("--json", options->as_json, "One JSON object: cpu, cuda, backends");
  command->footer("Examples:\n  godwit devices\n  GODWIT_ISA=avx2 godwit devices --json");
  command->callback([options] { finish(devices(*options)); });
}

void add_list_devices_flag(CLI::App& command) {
  command.add_flag_callback(
      "--list-devices",
      [] {
        list_devices();
        throw CLI::Success();
      },
      "Print what there is to compute on, and leave");
}

}  // namespace godwit::apps
