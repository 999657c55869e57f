#include "chat/template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "chat/chat_fixture.h"

namespace godwit::chat {
namespace {

TEST(ChatTemplate, RendersMessages) {
  EXPECT_EQ(rendered("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}",
                     {.messages_json = R"([{"role": "user", "content": "hi"}])"}),
            "<user>hi\n");
}

TEST(ChatTemplate, KeepsTheOrderOfKeys) {
  EXPECT_EQ(rendered("{{ messages[0]|tojson }}",
                     {.messages_json = R"([{"z": 1, "a": {"y": null, "b": 2.0}}])"}),
            R"({"z": 1, "a": {"y": null, "b": 2.0}})");
}

TEST(ChatTemplate, SaysWhereTheSyntaxIsWrong) {
  const auto error_of = [](const std::string& source) { return rendered(source, {}); };
  EXPECT_EQ(error_of("a\n{{ x y }}"),
            "error: chat template: line 2, column 6: expected '}}', found 'y'");
  EXPECT_EQ(error_of("{% if x %}"),
            "error: chat template: line 1, column 11: expected 'endif' "
            "before the end of the template");
  EXPECT_EQ(error_of("a{% nosuch %}"),
            "error: chat template: line 1, column 5: unknown tag 'nosuch'");
  EXPECT_EQ(error_of("{% include 'x' %}"),
            "error: chat template: line 1, column 4: 'include' is "
            "not supported: a chat template stands alone");
  EXPECT_EQ(error_of("{{ 'a }}"), "error: chat template: line 1, column 4: string is never closed");
  EXPECT_EQ(error_of("\n\n {# a"),
            "error: chat template: line 3, column 2: missing end of comment tag");
}

TEST(ChatTemplate, SaysWhereTheRenderingFailed) {
  const auto error_of = [](const std::string& source) {
    return rendered(source, {.messages_json = "[]"});
  };
  EXPECT_EQ(error_of("a\n{{ raise_exception('no tools, please') }}"),
            "error: chat template: line 2: no tools, please");
  EXPECT_EQ(error_of("{{ messages[0].role }}"),
            "error: chat template: line 1: list object has no element 0");
  EXPECT_EQ(error_of("\n\n{{ x.y }}"), "error: chat template: line 3: 'x' is undefined");
  EXPECT_EQ(error_of("{% set d = {} %}\n{{ d.a.b }}"),
            "error: chat template: line 2: 'dict object' has no attribute 'a'");
  EXPECT_EQ(
      error_of("{% set l = [] %}{{ l.append(1) }}"),
      "error: chat template: line 1: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(error_of("{{ 'a' + 1 }}"),
            "error: chat template: line 1: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(error_of("{{ 1|nope }}"), "error: chat template: line 1: No filter named 'nope'.");
}

TEST(ChatTemplate, TokensThatTheModelLacksAreUndefined) {
  EXPECT_EQ(rendered("{{ bos_token is defined }}{{ bos_token }}", {.messages_json = "[]"}),
            "False");
}

TEST(ChatTemplate, ToolsAreNoneWhereThereAreNone) {
  EXPECT_EQ(rendered("{{ tools is none }}", {.messages_json = "[]"}), "True");
  EXPECT_EQ(rendered("{{ tools }}", {.messages_json = "[]", .tools_json = "[]"}), "[]");
}

TEST(ChatTemplate, DatesComeFromTheGivenTime) {
  setenv("TZ", "UTC", 1);
  const RenderInput input{.messages_json = "[]", .now_unix_s = kFixtureTime};
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y, %-H:%M %% %q %') }}", input),
            "26 Jul 2024, 13:34 % %q %");
}

TEST(ChatTemplate, RendersTheSameTwice) {
  const auto parsed = Template::parse(
      "{% set n = namespace(i=0) %}{% for m in messages|selectattr('a') %}{% set n.i = n.i + m.a "
      "%}{% endfor %}{{ n.i }}");
  ASSERT_TRUE(parsed);
  const RenderInput input{.messages_json = R"([{"a": 1}, {"a": 0}, {"a": 2}])"};
  EXPECT_EQ(parsed->render(input)->text, "3");
  EXPECT_EQ(parsed->render(input)->text, "3");
}

TEST(ChatTemplate, LimitsCanBeNarrower) {
  RenderInput input{.messages_json = "[]", .limits = {.max_steps = 100}};
  EXPECT_EQ(rendered("{% for i in range(99) %}{% endfor %}", input),
            "error: chat template: line 1: rendering took more than 100 steps");
}

}  // namespace
}  // namespace godwit::chat
