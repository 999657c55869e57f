#include "gguf/shard_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace godwit::gguf {
namespace {

std::optional<uint32_t> five_digits(std::string_view text) {
  if (text.size() != 5 || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::filesystem::path ShardName::sibling(uint32_t other) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, other, count);
}

std::optional<ShardName> parse_shard_name(const std::filesystem::path& path) {
  // "-00002-of-00005.gguf" from the end.
  constexpr size_t kTail = 20;
  const std::string text = path.string();
  if (text.size() < kTail) return std::nullopt;
  const std::string_view tail = std::string_view(text).substr(text.size() - kTail);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") {
    return std::nullopt;
  }
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number == 0 || *number > *count) return std::nullopt;
  return ShardName{.stem = text.substr(0, text.size() - kTail), .number = *number, .count = *count};
}

}  // namespace godwit::gguf
