// Any text, with any user ranges, through SentencePiece and escaped-space vocabularies that are
// themselves random.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/small_vocab.h"
#include "tokenizer/spelling.h"
#include "tokenizer_checks.h"

namespace {

using namespace godwit;
using namespace godwit::tokenizer;

// A vocabulary out of the fuzzer's bytes: a few characters and byte tokens, and pieces of up to
// eight of the characters, among them special ones. Each piece is two bytes: where in `alphabet` it
// begins and how long it is, and what it is.
Vocab random_vocab(std::string_view model, std::string_view bytes, AddsSpace adds_space) {
  static const Vocab base = small_piece_vocab();
  static const std::set<std::string> base_pieces(base.tokens.begin(), base.tokens.end());
  Vocab vocab = base;
  std::set<std::string> pieces;
  vocab.model = model;
  vocab.add_space_prefix = adds_space == AddsSpace::kYes;
  static const std::string alphabet =
      "\xE2\x96\x81\xE2\x96\x81"
      "aab\n\xC3\xA9 <s>\xE2\x96\x81<0x41>\xC3\xA9\xFF"
      "baaaa";
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto where = static_cast<uint8_t>(bytes[i]);
    const auto what = static_cast<uint8_t>(bytes[i + 1]);
    const std::string piece = alphabet.substr(where % alphabet.size(), 1 + where / 32);
    if (base_pieces.contains(piece) || !pieces.insert(piece).second) continue;
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

// The last vocabularies stay: most inputs change only the text of one before, and making a
// vocabulary takes longer than the rest.
const Tokenizer& tokenizer_of(std::string_view model, std::string_view pieces,
                              AddsSpace adds_space) {
  struct Made {
    std::string key;
    Tokenizer tokenizer;
  };
  static std::deque<Made> made;
  const std::string key = fmt::format("{} {} {}", model, adds_space == AddsSpace::kYes, pieces);
  const auto known = std::ranges::find(made, key, &Made::key);
  if (known != made.end()) return known->tokenizer;
  Result<Tokenizer> tokenizer = Tokenizer::from_vocab(random_vocab(model, pieces, adds_space));
  check(tokenizer.has_value(), "a random vocabulary is refused");
  if (made.size() == 256) made.pop_back();
  made.push_front({key, std::move(*tokenizer)});
  return made.front().tokenizer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Byte 0 chooses the kind, byte 1 how many bytes of ranges follow the vocabulary's, which
  // byte 2 counts; the rest is text.
  if (size < 3) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 3, size - 3);
  const std::string_view pieces = input.substr(0, data[2]);
  input.remove_prefix(pieces.size());
  const size_t n_range_bytes = std::min<size_t>(data[1] % 32, input.size());
  // To these vocabularies U+2581 is a space; as one it comes back.
  MarkedText text{unescape_spaces(input.substr(n_range_bytes)), {}};
  text.user_ranges = user_ranges(input.substr(0, n_range_bytes), text.text.size());
  const std::string_view model = data[0] % 4 == 0 ? "gemma4" : kSentencePieceModel;
  const AddsSpace adds_space =
      data[0] % 2 == 1 && model == kSentencePieceModel ? AddsSpace::kYes : AddsSpace::kNo;
  check_text(tokenizer_of(model, pieces, adds_space), text, adds_space);
  return 0;
}
