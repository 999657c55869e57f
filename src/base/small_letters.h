// Text with A to Z made small and every other byte as it is, whatever the locale: names of types as
// flags spell them ("q4_k"), answers compared in any case.
#pragma once

#include <string>
#include <string_view>

namespace godwit {

[[nodiscard]] inline std::string small_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace godwit
