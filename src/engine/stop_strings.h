// Finds stop strings in streamed text across any chunk borders: the one that is complete first, of
// several that end together the longest. Text that could still turn out to be the beginning of one
// is held back, so that what was let through does not depend on the chunks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit::engine {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  // Text that may be shown after `text` arrived; nothing more after a stop was found.
  [[nodiscard]] std::string push(std::string_view text);
  // What was held back, when the stream ends without a stop.
  [[nodiscard]] std::string finish();
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace godwit::engine
