#include "hub/listing.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "hub/names.h"

namespace godwit::hub {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;

// Keeps what is read below, so that an answer of many megabytes cannot become many more in memory.
bool keep(int depth, json::parse_event_t event, const json& parsed) {
  if (depth > kMaxDepth) return false;
  if (event != json::parse_event_t::key || depth != 1) return true;
  const auto& key = parsed.get_ref<const std::string&>();
  return key == "sha" || key == "siblings";
}

// The member of this name if it is a text, otherwise "".
std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<uint64_t> number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

Result<RepoFile> parse_file(const json& entry) {
  if (!entry.is_object()) return fail("expected an object for each file");
  RepoFile file;
  file.path = text_of(entry, "rfilename");
  if (!is_inner_path(file.path)) {
    return fail("file name '{}' is not one inside a repository", file.path);
  }
  const auto lfs = entry.find("lfs");
  const bool is_large = lfs != entry.end() && lfs->is_object();
  file.checksum = is_large ? text_of(*lfs, "sha256") : text_of(entry, "blobId");
  std::ranges::transform(file.checksum, file.checksum.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (!file.checksum.empty() && !is_lower_hex(file.checksum, is_large ? 64 : 40)) {
    return fail("'{}' has the checksum '{}', which is none", file.path, file.checksum);
  }
  const std::optional<uint64_t> bytes = number_of(is_large ? *lfs : entry, "size");
  // A file without a size or checksum can be listed, but not fetched.
  if (!bytes) file.checksum.clear();
  file.bytes = bytes.value_or(0);
  if (file.bytes > uint64_t{1} << 62) return fail("'{}' has {} bytes", file.path, file.bytes);
  return file;
}

}  // namespace

Result<Listing> parse_listing(std::string_view text) {
  if (text.size() > kMaxListingBytes) {
    return fail("the answer has {} bytes, at most {} are read", text.size(), kMaxListingBytes);
  }
  const json whole = json::parse(text, keep, false);
  if (!whole.is_object()) {
    return fail("expected a JSON object, found '{}{}'", text.substr(0, 60),
                text.size() > 60 ? " ..." : "");
  }
  Listing listing;
  listing.commit = text_of(whole, "sha");
  if (!is_lower_hex(listing.commit, 40)) {
    return fail("expected a commit of 40 hex digits in 'sha', found '{}'", listing.commit);
  }
  const auto siblings = whole.find("siblings");
  if (siblings == whole.end() || !siblings->is_array()) {
    return fail("expected a list of files in 'siblings'");
  }
  listing.files.reserve(siblings->size());
  for (const json& entry : *siblings) {
    Result<RepoFile> file = parse_file(entry);
    if (!file) return fail(std::move(file).error());
    listing.files.push_back(*std::move(file));
  }
  std::ranges::sort(listing.files, {}, &RepoFile::path);
  return listing;
}

}  // namespace godwit::hub
