#include "apps/state_options.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "engine/state_file.h"
#include "os/memory.h"

namespace godwit::apps {

void add_state_option(CLI::App& command, StateOptions& options) {
  command.add_option("--state", options.file,
                     "File that keeps what was computed: taken up if it is there, written at the"
                     " end");
}

void add_cache_option(CLI::App& command, StateOptions& options) {
  command
      .add_option("--cache-ram", options.cache_ram_mib,
                  "(-cram) MiB for prefixes that the conversation may return to; 0: none, -1: no"
                  " limit")
      ->capture_default_str();
}

Result<std::optional<std::string>> take_up_state(const StateOptions& options,
                                                 engine::Session& session) {
  std::error_code unknown;
  if (options.file.empty() || !std::filesystem::exists(options.file, unknown)) return std::nullopt;
  Result<std::string> note = engine::restore_session(session, options.file);
  if (!note) return fail(std::move(note).error());
  return std::optional<std::string>(*std::move(note));
}

uint64_t cache_budget_bytes(const StateOptions& options, const engine::Engine& engine) {
  const uint64_t most = std::numeric_limits<uint64_t>::max() >> 20;
  const uint64_t mib = options.cache_ram_mib < 0
                           ? most
                           : std::min(most, static_cast<uint64_t>(options.cache_ram_mib));
  const uint64_t available = available_memory_bytes();
  if (available == 0) return mib << 20;
  const backend::MemoryNeed& need = engine.plan().need;
  uint64_t taken = need.kv_bytes + need.state_bytes + need.scratch_bytes;
  // Slots count against memory only when experts first come into them.
  const auto& policy = engine.settings().expert_cache;
  if (policy && policy->kind == experts::CacheKind::kBudget) taken += need.expert_bytes;
  return std::min(mib << 20, available > taken ? (available - taken) / 2 : 0);
}

}  // namespace godwit::apps
