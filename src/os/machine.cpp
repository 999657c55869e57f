#include "os/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace godwit {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// "512K" -> 524288
uint64_t size_bytes(std::string_view text) {
  const uint64_t value = number(text).value_or(0);
  if (text.ends_with('K')) return value << 10;
  if (text.ends_with('M')) return value << 20;
  return value;
}

// Folders "<prefix>0", "<prefix>1", ... below `parent`.
std::vector<fs::path> numbered(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string_view digits =
        std::string_view(name).substr(std::min(prefix.size(), name.size()));
    const bool all_digits = std::ranges::all_of(
        digits, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
    if (name.starts_with(prefix) && !digits.empty() && all_digits) found.push_back(it->path());
  }
  return found;
}

std::vector<CacheFacts> caches_of(const std::vector<fs::path>& processors) {
  // One cache is seen by each processor that shares it; its list of sharers tells it from others.
  using Key = std::tuple<uint32_t, std::string, uint64_t>;  // level, kind, bytes
  std::map<Key, std::set<std::string>> seen;
  for (const fs::path& processor : processors) {
    for (const fs::path& cache : numbered(processor / "cache", "index")) {
      std::string kind = first_line(cache / "type");
      for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const auto level = static_cast<uint32_t>(number(first_line(cache / "level")).value_or(0));
      const uint64_t bytes = size_bytes(first_line(cache / "size"));
      if (level == 0 || bytes == 0) continue;
      seen[{level, kind, bytes}].insert(first_line(cache / "shared_cpu_list"));
    }
  }
  std::vector<CacheFacts> caches;
  for (const auto& [key, sharers] : seen) {
    caches.push_back({.level = std::get<0>(key),
                      .kind = std::get<1>(key),
                      .bytes = std::get<2>(key),
                      .n_caches = sharers.size(),
                      .n_sharing = count_of_list(*sharers.begin())});
  }
  return caches;
}

uint64_t memory_total(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string line;
  constexpr std::string_view kKey = "MemTotal:";
  while (std::getline(file, line)) {
    if (!line.starts_with(kKey)) continue;
    const size_t digit = line.find_first_of("0123456789");
    if (digit == std::string::npos) return 0;
    return number(std::string_view(line).substr(digit)).value_or(0) << 10;
  }
  return 0;
}

}  // namespace

size_t count_of_list(std::string_view list) {
  size_t count = 0;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::optional<uint64_t> first = number(part);
    const size_t dash = part.find('-');
    const std::optional<uint64_t> last =
        dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first > (1u << 20)) return 0;
    count += *last - *first + 1;
  }
  return count;
}

MachineFacts machine_facts() { return machine_facts("/"); }

MachineFacts machine_facts(const fs::path& root) {
  const fs::path system = root / "sys/devices/system";
  const std::vector<fs::path> processors = numbered(system / "cpu", "cpu");
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  for (const fs::path& processor : processors) {
    const std::string socket = first_line(processor / "topology/physical_package_id");
    const std::string core = first_line(processor / "topology/core_id");
    if (socket.empty() || core.empty()) continue;  // offline
    sockets.insert(socket);
    cores.emplace(socket, core);
  }
  return {.n_logical = count_of_list(first_line(system / "cpu/online")),
          .n_cores = cores.size(),
          .n_sockets = sockets.size(),
          .n_memory_nodes = numbered(system / "node", "node").size(),
          .caches = caches_of(processors),
          .memory_bytes = memory_total(root)};
}

std::vector<std::string_view> processor_features() {
  __builtin_cpu_init();
  std::vector<std::string_view> found;
  const auto add = [&](std::string_view name, bool has) {
    if (has) found.push_back(name);
  };
  add("avx2", __builtin_cpu_supports("avx2") != 0);
  add("fma", __builtin_cpu_supports("fma") != 0);
  add("bmi2", __builtin_cpu_supports("bmi2") != 0);
  add("avx512f", __builtin_cpu_supports("avx512f") != 0);
  add("avx512bw", __builtin_cpu_supports("avx512bw") != 0);
  add("avx512vl", __builtin_cpu_supports("avx512vl") != 0);
  add("avx512dq", __builtin_cpu_supports("avx512dq") != 0);
  add("avx512vnni", __builtin_cpu_supports("avx512vnni") != 0);
  add("avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0);
  add("gfni", __builtin_cpu_supports("gfni") != 0);
  add("avx512bf16", __builtin_cpu_supports("avx512bf16") != 0);
  return found;
}

}  // namespace godwit
