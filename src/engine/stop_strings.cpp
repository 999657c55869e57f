#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace godwit::engine {
namespace {

// Length of the longest suffix of `text` that is a proper prefix of `stop`.
size_t open_suffix(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t begin = std::string::npos;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos || at + stop.size() > end) continue;
    begin = at + stop.size() < end ? at : std::min(begin, at);
    end = at + stop.size();
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, begin);
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, open_suffix(held_, stop));
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() { return stopped_ ? std::string() : std::exchange(held_, {}); }

}  // namespace godwit::engine
