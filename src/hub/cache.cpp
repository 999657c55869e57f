#include "hub/cache.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "hub/names.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";
constexpr std::string_view kIncomplete = ".incomplete";

std::string folder_name(std::string_view repo) {
  const size_t slash = repo.find('/');
  return fmt::format("{}{}--{}", kPrefix, repo.substr(0, slash), repo.substr(slash + 1));
}

// "models--ORG--NAME" back to "ORG/NAME"; empty for anything else.
std::string repo_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return "";
  name.remove_prefix(kPrefix.size());
  const size_t dashes = name.find("--");
  if (dashes == name.npos) return "";
  std::string repo = fmt::format("{}/{}", name.substr(0, dashes), name.substr(dashes + 2));
  return is_repo_id(repo) ? repo : "";
}

// The commit in a file of refs/; empty if there is none.
std::string read_commit(const fs::path& path) {
  std::string commit;
  std::ifstream(path) >> commit;
  return is_lower_hex(commit, 40) ? commit : "";
}

// The entries of a folder, or none if it cannot be read. In the order of their names, which no
// file system promises.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    paths.push_back(i->path());
  }
  std::ranges::sort(paths);
  return paths;
}

// main, or the first other branch or tag that was fetched.
std::string newest_commit(const fs::path& repo_folder) {
  std::string commit = read_commit(repo_folder / "refs" / "main");
  for (const fs::path& path : entries_of(repo_folder / "refs")) {
    if (commit.empty()) commit = read_commit(path);
  }
  return commit;
}

// A link's target is named after the checksum.
std::string checksum_of(const fs::path& path) {
  std::error_code error;
  std::string name = fs::read_symlink(path, error).filename().string();
  return is_lower_hex(name, 64) || is_lower_hex(name, 40) ? name : "";
}

Listing files_of(const fs::path& repo_folder, std::string commit) {
  const fs::path snapshot = repo_folder / "snapshots" / commit;
  Listing listing{.commit = std::move(commit)};
  std::error_code error;
  for (fs::recursive_directory_iterator i(snapshot, error), end; !error && i != end;
       i.increment(error)) {
    std::error_code gone;  // a link to a blob that was removed
    const uint64_t bytes = fs::file_size(i->path(), gone);
    if (gone || !i->is_regular_file(gone)) continue;
    listing.files.push_back({.path = i->path().lexically_relative(snapshot).generic_string(),
                             .bytes = bytes,
                             .checksum = checksum_of(i->path())});
  }
  std::ranges::sort(listing.files, {}, &RepoFile::path);
  return listing;
}

Status failed(std::string_view what, const fs::path& path, const std::error_code& error) {
  return fail("cannot {} {}: {}", what, path.string(), error.message());
}

}  // namespace

fs::path Cache::repo_folder(const std::string& repo) const { return folder_ / folder_name(repo); }

fs::path Cache::blob(const std::string& repo, const RepoFile& file) const {
  return repo_folder(repo) / "blobs" / file.checksum;
}

fs::path Cache::incomplete(const std::string& repo, const RepoFile& file) const {
  return blob(repo, file) += kIncomplete;
}

fs::path Cache::lock(const std::string& repo, const RepoFile& file) const {
  return folder_ / ".locks" / folder_name(repo) / (file.checksum + ".lock");
}

fs::path Cache::snapshot(const std::string& repo, const std::string& commit,
                         const RepoFile& file) const {
  return repo_folder(repo) / "snapshots" / commit / file.path;
}

Status Cache::link(const std::string& repo, const std::string& commit, const RepoFile& file) const {
  const fs::path place = snapshot(repo, commit, file);
  const fs::path target = blob(repo, file).lexically_relative(place.parent_path());
  std::error_code error;
  if (fs::read_symlink(place, error) == target && !error) return {};
  fs::create_directories(place.parent_path(), error);
  if (error) return failed("create", place.parent_path(), error);
  // Made beside and renamed: whoever looks finds the old or the new one.
  const fs::path beside = place.parent_path() / fmt::format(".link-{}", getpid());
  fs::remove(beside, error);
  fs::create_symlink(target, beside, error);
  if (error) return failed("create", beside, error);
  fs::rename(beside, place, error);
  return error ? failed("create", place, error) : Status{};
}

Status Cache::set_main(const std::string& repo, const std::string& commit) const {
  const fs::path main = repo_folder(repo) / "refs" / "main";
  if (read_commit(main) == commit) return {};
  std::error_code error;
  fs::create_directories(main.parent_path(), error);
  if (error) return failed("create", main.parent_path(), error);
  const fs::path beside = repo_folder(repo) / fmt::format(".main-{}", getpid());
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << commit;
  out.close();
  if (!out) return fail("cannot write {}", beside.string());
  fs::rename(beside, main, error);
  return error ? failed("write", main, error) : Status{};
}

std::optional<Listing> Cache::find(const std::string& repo) const {
  std::string commit = newest_commit(repo_folder(repo));
  if (commit.empty()) return std::nullopt;
  return files_of(repo_folder(repo), std::move(commit));
}

std::vector<CachedFile> Cache::list() const {
  std::vector<CachedFile> all;
  for (const fs::path& folder : entries_of(folder_)) {
    const std::string repo = repo_of(folder.filename().string());
    if (repo.empty()) continue;
    if (const std::optional<Listing> found = find(repo)) {
      for (const RepoFile& file : found->files) {
        if (!file.path.ends_with(".gguf")) continue;
        all.push_back({.repo = repo,
                       .path = file.path,
                       .place = snapshot(repo, found->commit, file),
                       .bytes = file.bytes});
      }
    }
    for (const fs::path& blob : entries_of(folder / "blobs")) {
      std::error_code error;
      const uint64_t bytes = fs::file_size(blob, error);
      if (blob.extension() != kIncomplete || error) continue;
      all.push_back({.repo = repo,
                     .path = blob.stem().string(),
                     .place = blob,
                     .bytes = bytes,
                     .complete = false});
    }
  }
  return all;
}

bool has_size(const fs::path& path, uint64_t bytes) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == bytes && !error;
}

}  // namespace godwit::hub
