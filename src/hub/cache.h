// The Hub's cache folder in the layout of huggingface_hub, which llama.cpp shares, so that each
// finds what another fetched:
//   models--ORG--NAME/blobs/<checksum>                  contents, named by SHA-256 or Git SHA-1
//   models--ORG--NAME/snapshots/<commit>/<path>         relative links to blobs
//   models--ORG--NAME/refs/main                         the commit that "main" was last seen at
//   .locks/models--ORG--NAME/<checksum>.lock            held while a blob is written
// Knows no network. Callers have checked all names (hub/names.h, hub/listing.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/listing.h"

namespace godwit::hub {

// A model file of the cache, or what there is of one.
struct CachedFile {
  std::string repo;
  std::string path;  // in the repository; of an unfinished file its checksum
  std::filesystem::path place;
  uint64_t bytes = 0;
  bool complete = true;
};

class Cache {
 public:
  explicit Cache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path repo_folder(const std::string& repo) const;
  [[nodiscard]] std::filesystem::path blob(const std::string& repo, const RepoFile& file) const;
  // Where a blob grows until it is verified.
  [[nodiscard]] std::filesystem::path incomplete(const std::string& repo,
                                                 const RepoFile& file) const;
  [[nodiscard]] std::filesystem::path lock(const std::string& repo, const RepoFile& file) const;
  [[nodiscard]] std::filesystem::path snapshot(const std::string& repo, const std::string& commit,
                                               const RepoFile& file) const;

  // Makes the snapshot's link to the blob, in place of whatever else is there.
  [[nodiscard]] Status link(const std::string& repo, const std::string& commit,
                            const RepoFile& file) const;
  [[nodiscard]] Status set_main(const std::string& repo, const std::string& commit) const;

  // The newest known commit's files that are here; nothing for a repository that is not.
  [[nodiscard]] std::optional<Listing> find(const std::string& repo) const;

  // GGUF files of all repositories, and unfinished blobs. Sorted by repository and path.
  [[nodiscard]] std::vector<CachedFile> list() const;

 private:
  std::filesystem::path folder_;
};

// Whether a file of exactly this size is there (behind links, too).
[[nodiscard]] bool has_size(const std::filesystem::path& path, uint64_t bytes);

}  // namespace godwit::hub
