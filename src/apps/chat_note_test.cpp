// Notes of conversations, there and back, and what is none.
#include "apps/chat_note.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

TEST(ChatNote, ComesBackAsItWas) {
  const std::vector<ChatMessage> messages = {{"system", "Be \"brief\".\n"}, {"user", "\xc3\xa9"}};
  const auto parsed = parse_chat_note(chat_note(messages));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, messages);
  EXPECT_TRUE(parse_chat_note("")->empty());
  EXPECT_TRUE(parse_chat_note(chat_note({}))->empty());
}

TEST(ChatNote, BytesThatAreNoTextAreReplaced) {
  const auto parsed = parse_chat_note(chat_note({{"user", "a\xff"}}));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at(0).content, "a\xef\xbf\xbd");
}

TEST(ChatNote, RefusesWhatIsNone) {
  for (const char* note : {"{", "[]", "7", "{}", R"({"messages": 1})", R"({"messages": null})"}) {
    EXPECT_FALSE(parse_chat_note(note)) << note;
  }
  for (const char* entry : {"1", "[]", "{}", R"({"role": "user"})", R"({"role": 1, "content": ""})",
                            R"({"role": "user", "content": ["x"]})"}) {
    const auto parsed = parse_chat_note(std::string(R"({"messages": [)") + entry + "]}");
    ASSERT_FALSE(parsed) << entry;
    EXPECT_EQ(parsed.error().message,
              "message 1 of the saved conversation has no role and content");
  }
}

TEST(ChatNote, NestingCostsNothing) {
  const std::string deep(2'000'000, '[');
  EXPECT_FALSE(parse_chat_note(deep));
  EXPECT_FALSE(parse_chat_note(R"({"messages": [)" + deep + std::string(2'000'000, ']') + "]}"));
}

}  // namespace
}  // namespace godwit::apps
