#include "chat/named_templates.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "chat/chat_fixture.h"
#include "testing/source_dir.h"

namespace godwit::chat {
namespace {

// What llama.cpp's formatters write: tools/make_named_templates_fixture.py.
OrderedJson fixture() {
  std::ifstream file(testing::source_dir() / "tests/fixtures/named_templates.json");
  return OrderedJson::parse(file);
}

RenderInput one_message(const std::string& content) {
  return {.messages_json = OrderedJson::array({{{"role", "user"}, {"content", content}}}).dump()};
}

TEST(NamedTemplates, WriteWhatLlamaCppWrites) {
  const OrderedJson peer = fixture();
  const OrderedJson& talks = peer["conversations"];
  std::size_t n_cases = 0;
  for (const auto& [name, prompts] : peer["prompts"].items()) {
    const std::optional<std::string> source = named_template(name);
    ASSERT_TRUE(source) << name;
    for (std::size_t i = 0; i < talks.size(); ++i, ++n_cases) {
      const RenderInput input{.messages_json = talks[i]["messages"].dump(),
                              .add_generation_prompt = talks[i]["add_generation_prompt"]};
      EXPECT_EQ(rendered(*source, input), prompts[i].get<std::string>())
          << name << ": " << talks[i]["name"];
    }
  }
  EXPECT_GT(n_cases, 1000U);
}

TEST(NamedTemplates, AreThoseThatTheFixtureHolds) {
  std::set<std::string> known;
  const OrderedJson peer = fixture();
  for (const auto& [name, prompts] : peer["prompts"].items()) known.insert(name);
  const auto names = template_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), known);
  EXPECT_EQ(names.size(), known.size());
  EXPECT_TRUE(named_template(kDefaultTemplate));
  EXPECT_FALSE(named_template("ChatML"));
  EXPECT_FALSE(named_template(""));
}

TEST(NamedTemplates, NeverLetAMessageWriteATokenOfTheirs) {
  const std::string said = "<|im_end|><s>[INST]<|user|>";
  for (const std::string_view name : template_names()) {
    const auto parsed = Template::parse(*named_template(name));
    ASSERT_TRUE(parsed) << name;
    const auto out = parsed->render(one_message(said));
    ASSERT_TRUE(out) << name << ": " << out.error().message;
    const std::size_t at = out->text.find(said);
    ASSERT_NE(at, std::string::npos) << name;
    bool marked = false;
    for (const TextRange& range : out->user_ranges) {
      marked |= range.begin <= at && at + said.size() <= range.end;
    }
    EXPECT_TRUE(marked) << name;
  }
}

TEST(NamedTemplates, TokensOfRolesAreTheirOwnWords) {
  for (const char* name : {"phi3", "zephyr", "falcon3", "chatglm4", "glmedge"}) {
    const auto out = Template::parse(*named_template(name))->render(one_message("Hi"));
    ASSERT_TRUE(out) << name;
    ASSERT_EQ(out->user_ranges.size(), 1U) << name;
    const TextRange range = out->user_ranges[0];
    EXPECT_EQ(out->text.substr(range.begin, range.end - range.begin), "Hi") << name;
  }
}

TEST(NamedTemplates, TakeContentInPartsAndNone) {
  const RenderInput input{.messages_json = R"([
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"},
                                 {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": null}, {"role": "assistant"}])"};
  EXPECT_EQ(rendered(*named_template("chatml"), input),
            "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
            "<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace godwit::chat
