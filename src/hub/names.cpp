#include "hub/names.h"

#include <algorithm>

namespace godwit::hub {
namespace {

constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxPartBytes = 255;  // NAME_MAX
constexpr size_t kMaxRepoBytes = 96;   // the Hub's own limit

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// One of the two parts of a repository's name.
bool is_repo_part(std::string_view part) {
  if (part.empty() || !is_word(part.front()) || !is_word(part.back())) return false;
  if (part.find("--") != part.npos || part.find("..") != part.npos) return false;
  return std::ranges::all_of(part, [](char c) { return is_word(c) || c == '-' || c == '.'; });
}

bool is_folder_or_file(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.size() <= kMaxPartBytes;
}

}  // namespace

bool is_repo_id(std::string_view text) {
  const size_t slash = text.find('/');
  return text.size() <= kMaxRepoBytes && slash != text.npos &&
         is_repo_part(text.substr(0, slash)) && is_repo_part(text.substr(slash + 1));
}

Result<ModelReference> parse_reference(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view repo = text.substr(0, colon);
  const std::string_view quant = colon == text.npos ? "" : text.substr(colon + 1);
  if (!is_repo_id(repo)) {
    return fail("expected a repository as ORG/NAME or ORG/NAME:QUANT, found '{}'", text);
  }
  const auto allowed = [](char c) { return is_word(c) || c == '-' || c == '.'; };
  if (colon != text.npos && (quant.empty() || !std::ranges::all_of(quant, allowed))) {
    return fail("expected a quantisation like Q4_K_M after ORG/NAME:, found '{}'", quant);
  }
  return ModelReference{.repo = std::string(repo), .quant = std::string(quant)};
}

bool is_inner_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  const auto harmless = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f && c != '\\';
  };
  if (!std::ranges::all_of(path, harmless)) return false;
  while (true) {
    const size_t slash = path.find('/');
    if (!is_folder_or_file(path.substr(0, slash))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_lower_hex(std::string_view text, size_t length) {
  return text.size() == length && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace godwit::hub
