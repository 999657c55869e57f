#include "hub/choose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "gguf/shard_name.h"

namespace godwit::hub {
namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr size_t kNamesInMessage = 20;

std::string in_capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

enum class Match { kNone, kPart, kWord };

// "Q4_K_M" in "name-Q4_K_M.gguf" is a word of its own; "F16" in "name-BF16.gguf" a part of one.
// Both in capitals. A quantisation is followed by "." or "-".
Match match(std::string_view path, std::string_view quant) {
  Match best = Match::kNone;
  for (size_t at = path.find(quant); at != path.npos; at = path.find(quant, at + 1)) {
    const size_t end = at + quant.size();
    if (end == path.size() || (path[end] != '.' && path[end] != '-')) continue;
    if (at == 0 || !is_word(path[at - 1])) return Match::kWord;
    best = Match::kPart;
  }
  return best;
}

using Choice = std::vector<const RepoFile*>;

std::string names_of(const Choice& files) {
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), kNamesInMessage); ++i) {
    names += (i == 0 ? "" : ", ") + files[i]->path;
  }
  if (files.size() > kNamesInMessage) {
    names += fmt::format(" and {} more", files.size() - kNamesInMessage);
  }
  return names;
}

// Whole words beat parts of words; what llama.cpp would have found is found.
Choice matching(const Choice& models, std::string_view quant) {
  const std::string wanted = in_capitals(quant);
  for (const Match least : {Match::kWord, Match::kPart}) {
    Choice found;
    for (const RepoFile* file : models) {
      if (match(in_capitals(file->path), wanted) >= least) found.push_back(file);
    }
    if (!found.empty()) return found;
  }
  return {};
}

// All shards of the model that `file` begins.
Result<std::vector<RepoFile>> with_shards(std::span<const RepoFile> files, const RepoFile& file) {
  const std::optional<gguf::ShardName> shard = gguf::parse_shard_name(file.path);
  if (!shard) return std::vector<RepoFile>{file};
  std::vector<RepoFile> all;
  for (uint32_t i = 1; i <= shard->count; ++i) {
    const std::string path = shard->sibling(i).string();
    const auto found = std::ranges::find(files, path, &RepoFile::path);
    if (found == files.end()) {
      return fail("'{}' is one of {} files, and '{}' is missing", file.path, shard->count, path);
    }
    all.push_back(*found);
  }
  return all;
}

Choice models_of(std::span<const RepoFile> files) {
  Choice models;
  for (const RepoFile& file : files) {
    if (is_model_start(file.path)) models.push_back(&file);
  }
  return models;
}

}  // namespace

bool is_model_start(std::string_view path) {
  constexpr auto kHelpers = std::to_array<std::string_view>(
      {"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"});
  const std::string_view name = file_name(path);
  if (!name.ends_with(kSuffix)) return false;
  if (std::ranges::any_of(kHelpers,
                          [&](std::string_view h) { return name.find(h) != name.npos; })) {
    return false;
  }
  const std::optional<gguf::ShardName> shard = gguf::parse_shard_name(name);
  return !shard || shard->number == 1;
}

std::string quant_of(std::string_view path) {
  const std::string_view name = file_name(path);
  if (!name.ends_with(kSuffix)) return "";
  const std::optional<gguf::ShardName> shard = gguf::parse_shard_name(name);
  const std::string stem =
      shard ? shard->stem : std::string(name.substr(0, name.size() - kSuffix.size()));
  size_t begin = stem.size();
  while (begin > 0 && is_word(stem[begin - 1])) --begin;
  if (begin == 0 || begin == stem.size()) return "";  // the whole name, or nothing behind "-"
  return in_capitals(stem.substr(begin));
}

Result<std::vector<RepoFile>> choose_files(std::span<const RepoFile> files,
                                           std::string_view quant) {
  const Choice models = models_of(files);
  if (models.empty()) return fail("there is no GGUF model among its {} files", files.size());
  Choice found;
  if (!quant.empty()) {
    found = matching(models, quant);
    if (found.empty()) {
      return fail("there is no {} among its models: {}", quant, names_of(models));
    }
  }
  for (const std::string_view usual : {"Q4_K_M", "Q8_0"}) {
    if (found.empty()) found = matching(models, usual);
  }
  if (found.empty()) found = {models.front()};
  if (found.size() > 1) {
    return fail("several of its models fit, name one with --hf-file: {}", names_of(found));
  }
  return with_shards(files, *found.front());
}

Result<std::vector<RepoFile>> choose_named(std::span<const RepoFile> files, std::string_view path) {
  const auto found = std::ranges::find(files, path, &RepoFile::path);
  if (found != files.end()) return with_shards(files, *found);
  const Choice models = models_of(files);
  return fail("there is no file '{}'; its models: {}", path,
              models.empty() ? "none" : names_of(models));
}

}  // namespace godwit::hub
