// Any bytes through each supported kind of pre-tokenizer, and through SentencePiece and
// escaped-space vocabularies that are themselves random, with any user ranges: what was encoded
// must decode to the same bytes, and no special token may come out of a user range.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tokenizer/small_vocab.h"
#include "tokenizer/spelling.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/utf8_stream.h"

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

// Two bytes for each range: the gap before it, and its length.
std::vector<TextRange> user_ranges(std::string_view bytes, size_t text_bytes) {
  std::vector<TextRange> ranges;
  size_t at = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const size_t begin = at + static_cast<uint8_t>(bytes[i]);
    const size_t end = begin + 1 + static_cast<uint8_t>(bytes[i + 1]) % 16;
    if (end > text_bytes) break;
    ranges.push_back({begin, end});
    at = end;
  }
  return ranges;
}

// Whether the vocabulary puts a space before each stretch of plain text.
enum class AddsSpace { kNo, kYes };

// A vocabulary out of the fuzzer's bytes: a few characters and byte tokens, and pieces of up to
// eight of the characters, among them special ones. Each piece is two bytes: where in `alphabet` it
// begins and how long it is, and what it is.
Vocab random_vocab(std::string_view model, std::string_view bytes, AddsSpace adds_space) {
  Vocab vocab = small_piece_vocab();
  vocab.model = model;
  vocab.add_space_prefix = adds_space == AddsSpace::kYes;
  const std::string alphabet =
      "\xE2\x96\x81\xE2\x96\x81"
      "aab\n\xC3\xA9 <s>\xE2\x96\x81<0x41>\xC3\xA9\xFF"
      "baaaa";
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto where = static_cast<uint8_t>(bytes[i]);
    const auto what = static_cast<uint8_t>(bytes[i + 1]);
    const std::string piece = alphabet.substr(where % alphabet.size(), 1 + where / 32);
    if (std::find(vocab.tokens.begin(), vocab.tokens.end(), piece) != vocab.tokens.end()) continue;
    constexpr std::array kTypes{kNormalType, kNormalType,      kNormalType,  kNormalType,
                                kNormalType, kUserDefinedType, kControlType, kUnknownType};
    const bool has_space = piece.find(kEscapedSpace) != std::string::npos;
    add_token(vocab, piece, has_space ? kNormalType : kTypes[what % kTypes.size()]);
    vocab.scores.push_back(what / 16);
    const size_t half = 1 + what / 8 % 8;
    if (half < piece.size())
      vocab.merges.push_back(piece.substr(0, half) + " " + piece.substr(half));
  }
  if (model != kSentencePieceModel) vocab.scores.clear();
  return vocab;
}

// Walks the tokens along the text: each must stand for the bytes at its place.
void check_tokens(const Tokenizer& tokenizer, const MarkedText& text,
                  const std::vector<TokenId>& tokens, AddsSpace adds_space) {
  size_t at = 0;
  bool begins_stretch = true;
  for (const TokenId token : tokens) {
    std::string_view bytes = tokenizer.bytes(token);
    const TokenKind kind = tokenizer.kind(token);
    const bool is_plain = kind == TokenKind::kNormal || kind == TokenKind::kByte;
    if (begins_stretch && is_plain && adds_space == AddsSpace::kYes) {
      check(bytes.starts_with(' '), "a stretch of text that does not begin with the added space");
      bytes.remove_prefix(1);
    }
    begins_stretch = !is_plain;
    check(text.text.substr(at, bytes.size()) == bytes, "a token that is not the text");
    for (const TextRange& range : text.user_ranges) {
      const bool touches = range.begin < at + bytes.size() && at < range.end;
      // White space can forge nothing, and a character may have no other token.
      const bool is_harmless = kind == TokenKind::kUserDefined &&
                               (bytes.find_first_not_of(" \t\r\n") == std::string_view::npos ||
                                next_utf8(bytes).bytes == bytes.size());
      check(!touches || is_plain || is_harmless, "a special token out of a user range");
    }
    at += bytes.size();
  }
  check(at == text.text.size(), "bytes were lost");
}

void check_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
                  std::string_view text) {
  Utf8Stream by_token;
  std::string streamed;
  for (const TokenId token : tokens) streamed += by_token.push(tokenizer.bytes(token));
  streamed += by_token.finish();
  Utf8Stream at_once;
  std::string whole = at_once.push(text);
  whole += at_once.finish();
  check(streamed == whole, "the chunks changed the streamed text");
}

}  // namespace

namespace {

void check_text(const Tokenizer& tokenizer, const MarkedText& text, AddsSpace adds_space) {
  const std::vector<TokenId> marked = tokenizer.encode(text, AddBos::kNever);
  check_tokens(tokenizer, text, marked, adds_space);
  if (adds_space == AddsSpace::kNo) check_stream(tokenizer, marked, text.text);
  const std::vector<TokenId> plain = tokenizer.encode(text.text, Specials::kText, AddBos::kNever);
  check(tokenizer.decode(plain) == text.text, "decoding does not undo encoding");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Byte 0 chooses the vocabulary (from 240 on a random one, whose bytes come first, byte 2
  // counting them), byte 1 how many bytes of ranges follow; the rest is text.
  if (size < 3) return 0;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool is_random = data[0] >= 240;
  std::string_view pieces;
  size_t at = 2;
  if (is_random) {
    pieces = input.substr(3, data[2]);
    at = 3 + pieces.size();
  }
  const size_t n_range_bytes = std::min<size_t>(data[1] % 32, size - at);
  MarkedText text{std::string(input.substr(at + n_range_bytes)), {}};
  // To vocabularies with escaped spaces U+2581 is a space; as one it comes back.
  if (is_random) text.text = unescape_spaces(text.text);
  text.user_ranges = user_ranges(input.substr(at, n_range_bytes), text.text.size());
  if (!is_random) {
    check_text(tokenizers()[data[0] % tokenizers().size()], text, AddsSpace::kNo);
    return 0;
  }
  const std::string_view model = data[0] % 4 == 0 ? "gemma4" : kSentencePieceModel;
  const AddsSpace adds_space =
      data[0] % 2 == 1 && model == kSentencePieceModel ? AddsSpace::kYes : AddsSpace::kNo;
  const Result<Tokenizer> tokenizer =
      Tokenizer::from_vocab(random_vocab(model, pieces, adds_space));
  check(tokenizer.has_value(), "a random vocabulary is refused");
  check_text(*tokenizer, text, adds_space);
  return 0;
}
