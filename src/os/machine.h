// What this machine is: processor, caches, memory nodes, memory, as Linux tells of them. For
// reports only; what a number decides (threads, kernels, context) is asked of topology.h,
// cpu_features.h and memory.h. Anything the system does not tell is left empty or 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

struct CacheFacts {
  uint32_t level = 0;
  std::string kind;  // "data", "instruction", "unified"
  uint64_t bytes = 0;
  size_t n_caches = 0;   // of this level and kind in the machine
  size_t n_sharing = 0;  // logical processors that share one
};

struct MachineFacts {
  size_t n_logical = 0;  // online logical processors
  size_t n_cores = 0;
  size_t n_sockets = 0;
  size_t n_memory_nodes = 0;       // NUMA
  std::vector<CacheFacts> caches;  // by level, data before instruction
  uint64_t memory_bytes = 0;
};

[[nodiscard]] MachineFacts machine_facts();
// The same from another root directory ("<root>/sys/devices/system/cpu"), for tests.
[[nodiscard]] MachineFacts machine_facts(const std::filesystem::path& root);

// Instruction set extensions that Godwit has code for and the processor offers: "avx2", "fma", ...
[[nodiscard]] std::vector<std::string_view> processor_features();

// "0-3,8" -> 5; 0 for anything else than such a list.
[[nodiscard]] size_t count_of_list(std::string_view list);

}  // namespace godwit
