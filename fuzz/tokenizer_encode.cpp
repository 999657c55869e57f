// Any bytes through each supported kind of pre-tokenizer, with any user ranges. Vocabularies that
// are random themselves: tokenizer_pieces.cpp.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/small_vocab.h"
#include "tokenizer_checks.h"

namespace {

using namespace godwit;
using namespace godwit::tokenizer;

// Of each kind of pattern one. New names go to the end: the corpus chooses by place.
constexpr auto kByteLevelNames = std::to_array<std::string_view>(
    {"gpt-2",    "smollm",       "qwen2",          "qwen35",      "llama-bpe",
     "default",  "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon",
     "gpt-4o",   "tekken",       "kimi-k2",        "poro-chat",   "chameleon",
     "tiny_aya", "superbpe",     "afmoe",          "exaone-moe",  "bailingmoe",
     "jais-2",   "youtu",        "laguna",         "seed-coder",  "spark2_5"});

const std::array<Tokenizer, kByteLevelNames.size()>& tokenizers() {
  static const auto make = [](std::string_view pre) {
    Result<Tokenizer> tokenizer = Tokenizer::from_vocab(small_vocab(pre));
    check(tokenizer.has_value(), "the small vocabulary is refused");
    return std::move(*tokenizer);
  };
  static const std::array<Tokenizer, kByteLevelNames.size()> all = [] {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::array<Tokenizer, sizeof...(I)>{make(kByteLevelNames[I])...};
    }(std::make_index_sequence<kByteLevelNames.size()>());
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Byte 0 chooses the pre-tokenizer, byte 1 how many bytes of ranges follow; the rest is text.
  if (size < 3) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t n_range_bytes = std::min<size_t>(data[1] % 32, input.size());
  MarkedText text{std::string(input.substr(n_range_bytes)), {}};
  text.user_ranges = user_ranges(input.substr(0, n_range_bytes), text.text.size());
  check_text(tokenizers()[data[0] % tokenizers().size()], text, AddsSpace::kNo);
  return 0;
}
