// The question that `check needles` asks: a text, cut to a length, with a passphrase somewhere in
// it and the question at its end. Pure text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::apps {

// "amber-falcon-7314": words that no text of this project has beside each other.
[[nodiscard]] std::string passphrase(uint64_t seed);

struct NeedleText {
  std::string_view text;
  size_t n_bytes = 0;  // of the text that are used, cut at the end of a line
  double depth = 0.5;  // of the needle: 0 before the text, 1 after it
  std::string_view passphrase;
};

// One message of a user.
[[nodiscard]] std::string needle_message(const NeedleText& needle);

// Whether an answer names the passphrase, whatever it says around it and in whatever case.
[[nodiscard]] bool names_passphrase(std::string_view answer, std::string_view passphrase);

}  // namespace godwit::apps
