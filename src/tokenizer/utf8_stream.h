// Joins token bytes into text without ever splitting a character: bytes of an unfinished UTF-8
// sequence wait for the next token; bytes that can never become one turn into U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace godwit::tokenizer {

class Utf8Stream {
 public:
  // Whole characters available after adding `bytes`.
  [[nodiscard]] std::string push(std::string_view bytes);
  // What is left at the end of the stream, as U+FFFD if incomplete.
  [[nodiscard]] std::string finish();

 private:
  std::string pending_;
};

}  // namespace godwit::tokenizer
