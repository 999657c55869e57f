#include "tokenizer/sentencepiece.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace godwit::tokenizer {
namespace {

// Pieces with scores; bytes have no tokens, and -1 is written for what is not spelt.
struct Pieces {
  std::vector<std::string> texts;
  std::vector<float> scores;
  TokenId unknown = kNoToken;

  void add(std::string text, float score) {
    texts.push_back(std::move(text));
    scores.push_back(score);
  }
  PieceTable table() const {
    TokenIds ids;
    for (size_t i = 0; i < texts.size(); ++i) ids.emplace(texts[i], static_cast<int32_t>(i));
    return PieceTable(ids, scores, find_byte_tokens(ids), unknown);
  }
  std::vector<std::string> encode(std::string_view text) const {
    const PieceTable pieces = table();
    PieceEncoder encoder(pieces);
    std::vector<std::string> out;
    for (const TokenId id : encoder.encode(text)) {
      out.push_back(texts[static_cast<size_t>(id.value)]);
    }
    return out;
  }
};

using Texts = std::vector<std::string>;

// The definition: while any adjacent pair is a piece, join the leftmost of the best score.
Texts merge_by_definition(const Pieces& pieces, std::string_view text) {
  Texts parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    size_t best = pieces.texts.size();
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found =
          std::find(pieces.texts.begin(), pieces.texts.end(), parts[i] + parts[i + 1]);
      if (found == pieces.texts.end()) continue;
      const auto piece = static_cast<size_t>(found - pieces.texts.begin());
      if (best == pieces.texts.size() || pieces.scores[piece] > pieces.scores[best]) {
        best = piece;
        best_at = i;
      }
    }
    if (best == pieces.texts.size()) return parts;
    parts[best_at] += parts[best_at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(SentencePiece, MergesTheBestScoreFirstAndOfEqualOnesTheLeftmost) {
  Pieces pieces;
  for (const char* c : {"a", "b", "c"}) pieces.add(c, 0);
  pieces.add("ab", -2);
  pieces.add("bc", -1);
  pieces.add("aa", -3);
  EXPECT_EQ(pieces.encode("abc"), (Texts{"a", "bc"}));
  EXPECT_EQ(pieces.encode("aaa"), (Texts{"aa", "a"}));
  EXPECT_EQ(pieces.encode(""), Texts{});
}

TEST(SentencePiece, DoesAsItsDefinitionSaysForRandomVocabularies) {
  RandomStream random(3);
  for (int round = 0; round < 300; ++round) {
    Pieces pieces;
    for (const char* c : {"a", "b", "c"}) pieces.add(c, 0);
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (uint64_t n = 2 + random.below(4); n > 0; --n) {
        text += static_cast<char>('a' + random.below(3));
      }
      if (std::find(pieces.texts.begin(), pieces.texts.end(), text) == pieces.texts.end()) {
        // Few different scores, so that ties are common.
        pieces.add(text, -static_cast<float>(random.below(4)));
      }
    }
    std::string text;
    for (uint64_t n = random.below(24); n > 0; --n) {
      text += static_cast<char>('a' + random.below(3));
    }
    ASSERT_EQ(pieces.encode(text), merge_by_definition(pieces, text)) << text;
  }
}

TEST(SentencePiece, JoinsCharactersThatAreNoPiecesThemselves) {
  Pieces pieces;
  pieces.add("xy", 0);
  pieces.unknown = {0};
  EXPECT_EQ(pieces.encode("xy"), Texts{"xy"});
}

TEST(SentencePiece, SpellsUnknownCharactersInBytesOrAsUnknown) {
  Pieces pieces;
  pieces.add("<unk>", 0);
  pieces.add("<0xC3>", 0);
  pieces.add("<0xA9>", 0);
  pieces.unknown = {0};
  EXPECT_EQ(pieces.encode("\xC3\xA9"), (Texts{"<0xC3>", "<0xA9>"}));
  EXPECT_EQ(pieces.encode("\xC3\xAA"), Texts{"<unk>"})
      << "one for the character, not for its bytes";
  EXPECT_EQ(pieces.encode("\xC3"), Texts{"<0xC3>"}) << "half a character";
  pieces.unknown = kNoToken;
  EXPECT_EQ(pieces.encode("\xC3\xAA"), Texts{});
}

TEST(SentencePiece, TakesTimeInProportionToTheTextWhateverIsInIt) {
  Pieces pieces;
  std::string run = "a";
  for (int i = 0; i < 6; ++i, run += run) pieces.add(run, -static_cast<float>(i));
  const PieceTable table = pieces.table();
  for (const size_t n : {1'000u, 40'000u, 300'000u}) {
    PieceEncoder encoder(table);
    const size_t n_tokens = encoder.encode(std::string(n, 'a')).size();
    EXPECT_GE(n_tokens, n / 32);
    EXPECT_LE(encoder.queue_pops(), 3 * n);
  }
}

}  // namespace
}  // namespace godwit::tokenizer
