#include "tokenizer/byte_level.h"

#include <gtest/gtest.h>

#include <set>

#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

TEST(ByteLevel, SpellsBytesAsGpt2Does) {
  EXPECT_EQ(to_byte_level("a b\n"),
            "a\xC4\xA0"
            "b\xC4\x8A");
  EXPECT_EQ(to_byte_level("\xC3\xA9"), "\xC3\x83\xC2\xA9");
  EXPECT_EQ(to_byte_level(std::string_view("\0", 1)), "\xC4\x80");
  EXPECT_EQ(to_byte_level("\xAD"), "\xC5\x83");
}

TEST(ByteLevel, GivesEveryByteACharacterOfItsOwn) {
  std::set<std::string> characters;
  for (int i = 0; i < 256; ++i) {
    const std::string byte(1, static_cast<char>(i));
    const std::string character = to_byte_level(byte);
    EXPECT_EQ(next_utf8(character).bytes, character.size());
    EXPECT_EQ(from_byte_level(character), byte);
    characters.insert(character);
  }
  EXPECT_EQ(characters.size(), 256u);
}

TEST(ByteLevel, LeavesOtherCharactersAsTheyAre) {
  EXPECT_EQ(from_byte_level("\xE4\xB8\xAD\xC4\xA0"), "\xE4\xB8\xAD ");
  EXPECT_EQ(from_byte_level("\xC5\x84"), "\xC5\x84") << "U+0144, the first beyond the alphabet";
  EXPECT_EQ(from_byte_level("a\xFFz"), "a\xFFz");
}

}  // namespace
}  // namespace godwit::tokenizer
