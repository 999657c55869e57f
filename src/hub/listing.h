// What a repository holds, as the Hub's API tells it
// (/api/models/ORG/NAME/revision/main?blobs=true): a commit and files with sizes and checksums. The
// answer is untrusted: names that lead out of the repository, checksums and sizes that are none,
// and nonsense are errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace godwit::hub {

struct RepoFile {
  std::string path;  // in the repository, "/" between folders
  uint64_t bytes = 0;
  // 64 hex digits: SHA-256 of the content (stored by LFS). 40: SHA-1 of it as a Git blob. Names the
  // file's blob in the cache. Empty: the server does not say.
  std::string checksum{};
};

struct Listing {
  std::string commit;             // 40 hex digits
  std::vector<RepoFile> files{};  // sorted by path
};

inline constexpr size_t kMaxListingBytes = size_t{8} << 20;

[[nodiscard]] Result<Listing> parse_listing(std::string_view json);

}  // namespace godwit::hub
