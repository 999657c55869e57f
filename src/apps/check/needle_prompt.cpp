#include "apps/check/needle_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "base/small_letters.h"

namespace godwit::apps {
namespace {

constexpr auto kColours = std::to_array<std::string_view>(
    {"amber", "crimson", "indigo", "ivory", "olive", "scarlet", "silver", "violet"});
constexpr auto kBirds = std::to_array<std::string_view>(
    {"falcon", "heron", "kestrel", "lapwing", "osprey", "plover", "raven", "starling"});

// The end of the line that `at` lies in, so that nothing is cut in a word or a character.
size_t line_end(std::string_view text, size_t at) {
  const size_t found = text.find('\n', std::min(at, text.size()));
  return found == std::string_view::npos ? text.size() : found + 1;
}

}  // namespace

std::string passphrase(uint64_t seed) {
  RandomStream random(seed);
  const std::string_view colour = kColours[random.below(kColours.size())];
  const std::string_view bird = kBirds[random.below(kBirds.size())];
  return fmt::format("{}-{}-{}", colour, bird, 1000 + random.below(9000));
}

std::string needle_message(const NeedleText& needle) {
  const std::string_view text = needle.text.substr(0, line_end(needle.text, needle.n_bytes));
  const auto wanted = static_cast<size_t>(static_cast<double>(text.size()) * needle.depth);
  const size_t at = wanted == 0 ? 0 : line_end(text, wanted);
  return fmt::format(
      "Here is a long text. A passphrase is hidden in it; remember it.\n\n{}\n"
      "The secret passphrase is {}. Remember it.\n\n{}\n"
      "That was the text. What is the secret passphrase that it mentions? Answer with the "
      "passphrase alone.",
      text.substr(0, at), needle.passphrase, text.substr(at));
}

bool names_passphrase(std::string_view answer, std::string_view passphrase) {
  return small_letters(answer).find(small_letters(passphrase)) != std::string::npos;
}

}  // namespace godwit::apps
