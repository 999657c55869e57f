#include "tokenizer/spelling.h"

#include <gtest/gtest.h>

namespace godwit::tokenizer {
namespace {

TEST(Spelling, EscapesEverySpaceAndNothingElse) {
  EXPECT_EQ(escape_spaces(""), "");
  EXPECT_EQ(escape_spaces(" a  b\t\n\xC2\xA0 "),
            "\xE2\x96\x81"
            "a\xE2\x96\x81\xE2\x96\x81"
            "b\t\n\xC2\xA0\xE2\x96\x81");
  EXPECT_EQ(unescape_spaces(escape_spaces("  x y ")), "  x y ");
  // The text's own U+2581 is a space from here on: SentencePiece cannot tell them apart.
  EXPECT_EQ(unescape_spaces("\xE2\x96\x81\xE2\x96"), " \xE2\x96");
}

TEST(Spelling, GivesTheBytesOfTokensInBothSpellings) {
  EXPECT_EQ(token_bytes("\xE2\x96\x81x", TokenKind::kNormal, Spelling::kEscapedSpaces), " x");
  EXPECT_EQ(token_bytes("\xC4\xA0x", TokenKind::kNormal, Spelling::kEscapedSpaces), "\xC4\xA0x");
  EXPECT_EQ(token_bytes("\xC4\xA0x", TokenKind::kNormal, Spelling::kByteLevel), " x");
  EXPECT_EQ(token_bytes("\xE2\x96\x81x", TokenKind::kControl, Spelling::kEscapedSpaces),
            "\xE2\x96\x81x");
  EXPECT_EQ(token_bytes("<0x0A>", TokenKind::kByte, Spelling::kEscapedSpaces), "\n");
  EXPECT_EQ(token_bytes("<0x0A>", TokenKind::kNormal, Spelling::kEscapedSpaces), "<0x0A>");
  EXPECT_EQ(token_bytes("<0xZZ>", TokenKind::kByte, Spelling::kEscapedSpaces), "<0xZZ>");
  EXPECT_EQ(token_bytes("x", TokenKind::kUnused, Spelling::kEscapedSpaces), "");
}

TEST(Spelling, FindsByteTokensByTheirText) {
  const TokenIds ids{{"<0x00>", 7}, {"<0xAF>", 8}, {"<0xaf>", 9}};
  const ByteTokens tokens = find_byte_tokens(ids);
  EXPECT_EQ(tokens[0], TokenId{7});
  EXPECT_EQ(tokens[0xAF], TokenId{8});
  EXPECT_EQ(tokens[1], kNoToken);
}

}  // namespace
}  // namespace godwit::tokenizer
