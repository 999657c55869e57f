#include <charconv>

#include "net/http_client.h"

namespace godwit::net {
namespace {

// Takes a number off the front of the text.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

void parse_content_range(std::string_view text, Head& head) {
  if (!take(text, "bytes ")) return;
  const std::optional<uint64_t> first = take_number(text);
  if (!first || !take(text, "-")) return;
  const std::optional<uint64_t> last = take_number(text);
  if (!last || *last < *first || !take(text, "/")) return;
  if (text == "*") {
    head.range_first = first;
    return;
  }
  const std::optional<uint64_t> total = take_number(text);
  if (!total || !text.empty() || *last >= *total) return;
  head.range_first = first;
  head.range_total = total;
}

}  // namespace godwit::net
