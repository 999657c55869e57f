// A GET into memory or into a file, with retries. A file grows where it is: what arrived stays
// when the transfer fails, and the next call goes on behind it. Checks lengths and that all parts
// are of one version of the file; whoever knows a checksum verifies it afterwards. Called by hub/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "net/http_client.h"
#include "net/retry.h"

namespace godwit::net {

// The body of a small response; more than `max_bytes` is an error.
[[nodiscard]] tl::expected<std::string, Failure> get_text(HttpClient& client,
                                                          const Request& request, size_t max_bytes,
                                                          const RetryPolicy& policy,
                                                          const Watch& watch);

struct Download {
  std::string url;
  std::string bearer_token;
  std::filesystem::path file;                 // created, or continued
  uint64_t bytes = 0;                         // that the whole file must have
  std::function<void(uint64_t)> on_progress;  // bytes in the file; may go back to 0
};

// Ends with exactly `bytes` in the file, on the disk.
[[nodiscard]] tl::expected<void, Failure> download(HttpClient& client, const Download& wanted,
                                                   const RetryPolicy& policy, const Watch& watch);

}  // namespace godwit::net
