// What a Hub answers, then choosing files from it: whatever the bytes, an error, or names and
// checksums that may become paths below the cache and nowhere else. The first line is the
// quantisation or file that a user asks for, the rest the answer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "checks.h"
#include "hub/cache.h"
#include "hub/choose.h"
#include "hub/listing.h"
#include "hub/names.h"
#include "net/http_client.h"

namespace {

using namespace godwit;  // NOLINT: one file, the names of one library

void require_below(const std::filesystem::path& folder, const std::filesystem::path& path) {
  const std::string normal = path.lexically_normal().string();
  require(normal == path.string());
  require(normal.starts_with(folder.string() + "/"));
}

void chosen(const Result<std::vector<hub::RepoFile>>& files) {
  if (!files) {
    require(!files.error().message.empty());
    return;
  }
  require(!files->empty());
}

void listing(std::string_view wanted, std::string_view json) {
  const Result<hub::Listing> listing = hub::parse_listing(json);
  if (!listing) {
    require(!listing.error().message.empty());
    return;
  }
  require(hub::is_lower_hex(listing->commit, 40));
  const hub::Cache cache("/cache");
  for (const hub::RepoFile& file : listing->files) {
    require_below("/cache/models--o--n/snapshots/" + listing->commit,
                  cache.snapshot("o/n", listing->commit, file));
    if (file.checksum.empty()) continue;
    require_below("/cache/models--o--n/blobs", cache.incomplete("o/n", file));
    require_below("/cache/.locks/models--o--n", cache.lock("o/n", file));
    (void)hub::quant_of(file.path);
  }
  chosen(hub::choose_files(listing->files, ""));
  if (!wanted.empty()) chosen(hub::choose_files(listing->files, wanted));
  chosen(hub::choose_named(listing->files, wanted));
}

void reference(std::string_view text) {
  const Result<hub::ModelReference> parsed = hub::parse_reference(text);
  if (!parsed) return;
  require(hub::is_repo_id(parsed->repo));
  require_below("/cache", hub::Cache("/cache").repo_folder(parsed->repo));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(data, data + size);
  const size_t line = std::min(text.find('\n'), text.size());
  const std::string_view wanted = std::string_view(text).substr(0, line);
  reference(wanted);
  net::Head head;
  net::parse_content_range(wanted, head);
  listing(wanted, std::string_view(text).substr(std::min(line + 1, text.size())));
  return 0;
}
