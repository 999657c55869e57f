#include "apps/tokenize.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

TEST(TokenizeCommand, ReplacesEscapesAsLlamaCppDoes) {
  EXPECT_EQ(without_escapes(R"(a\nb\tc\rd)"), "a\nb\tc\rd");
  EXPECT_EQ(without_escapes(R"(\'\"\\n)"), "'\"\\n");
  EXPECT_EQ(without_escapes(R"(\x41\xfF)"), "A\xFF");
  EXPECT_EQ(without_escapes("\\x00"), std::string(1, '\0'));
}

TEST(TokenizeCommand, LeavesOtherBackslashesAlone) {
  for (const char* text :
       {"\\", "a\\", "\\q", "\\u0041", "\\x", "\\x4", "\\xg1", "\\x-1", "\\X41"}) {
    EXPECT_EQ(without_escapes(text), text);
  }
}

}  // namespace
}  // namespace godwit::apps
