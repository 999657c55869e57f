#include "chat/template.h"

#include <gtest/gtest.h>

namespace godwit::chat {
namespace {

TEST(ChatTemplate, RendersMessages) {
  auto parsed = Template::parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}");
  ASSERT_TRUE(parsed) << parsed.error().message;
  auto out = parsed->render({.messages_json = R"([{"role":"user","content":"hi"}])"});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->text, "<user>hi\n");
}

}  // namespace
}  // namespace godwit::chat
