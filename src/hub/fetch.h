// From "org/name:quant" to files on this machine: asks the Hub what there is, chooses, fetches
// what the cache lacks, verifies checksums. An interrupted fetch goes on where it stopped. Two
// programs that want the same file wait for one another. Never prints: progress and remarks go to a
// Watch. Called by apps/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/names.h"
#include "hub/settings.h"
#include "net/retry.h"

namespace godwit::hub {

struct WantedModel {
  ModelReference reference;
  std::string file;  // path in the repository; empty: chosen by quantisation
};

struct FetchedFile {
  std::filesystem::path path;  // in the cache
  uint64_t bytes = 0;
  std::string checksum;  // as RepoFile has it; empty if the cache does not say
};

struct FetchedModel {
  std::string repo;
  std::string commit;
  std::vector<FetchedFile> files{};  // the one to open is in front
};

struct FetchWatch {
  net::Watch net;
  // What is being done ("name.gguf", "verifying"), bytes done and to do. Done may go
  // back when a file has to be begun anew.
  std::function<void(std::string_view, uint64_t, uint64_t)> progress;
};

// Without network, and where the Hub cannot be reached, what the cache holds is good enough.
// Errors say what a user can do: a name to correct, a token to set, a licence to accept.
[[nodiscard]] Result<FetchedModel> fetch_model(const HubSettings& settings,
                                               const WantedModel& wanted, const FetchWatch& watch);

}  // namespace godwit::hub
