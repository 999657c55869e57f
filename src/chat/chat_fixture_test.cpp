#include "chat/chat_fixture.h"
#include "testing/source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace godwit::chat {

namespace {

OrderedJson read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return OrderedJson::parse(file);
}

// GODWIT_CHAT_FIXTURES names another folder, to try templates that are not committed.
std::filesystem::path folder() {
  if (const char* other = std::getenv("GODWIT_CHAT_FIXTURES")) {
    return other;
  }
  return testing::source_dir() / "tests/fixtures/chat";
}

}  // namespace

std::vector<OrderedJson> model_fixtures() {
  const OrderedJson conversations = read_json(folder() / "conversations.json")["cases"];
  std::vector<OrderedJson> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".json") || name == "language.json" || name == "conversations.json") {
      continue;
    }
    OrderedJson& fixture = out.emplace_back(read_json(entry.path()));
    OrderedJson& cases = fixture["cases"];
    EXPECT_EQ(cases.size(), conversations.size()) << name;
    for (std::size_t i = 0; i < std::min(cases.size(), conversations.size()); ++i) {
      EXPECT_EQ(cases[i]["name"], conversations[i]["name"]) << name;
      cases[i].update(conversations[i]);
    }
  }
  return out;
}

OrderedJson language_fixture() { return read_json(folder() / "language.json"); }

RenderInput render_input(const OrderedJson& fixture, const OrderedJson& conversation) {
  const auto text = [&](const char* key) {
    return conversation.contains(key) ? conversation[key].dump() : "";
  };
  return {.messages_json = text("messages"),
          .tools_json = text("tools"),
          .extra_json = text("extra"),
          .bos_token = fixture["bos_token"],
          .eos_token = fixture["eos_token"],
          .add_generation_prompt = conversation.value("add_generation_prompt", true),
          .now_unix_s = kFixtureTime};
}

std::string rendered(const std::string& source, const RenderInput& input) {
  const auto parsed = Template::parse(source);
  if (!parsed) {
    return "error: " + parsed.error().message;
  }
  const auto out = parsed->render(input);
  return out ? out->text : "error: " + out.error().message;
}

namespace {

class ChatFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);  // strftime_now prints local time
  }
};

TEST_F(ChatFixture, ModelsRenderAsJinja2Renders) {
  std::size_t n_cases = 0;
  for (const OrderedJson& fixture : model_fixtures()) {
    for (const OrderedJson& conversation : fixture["cases"]) {
      SCOPED_TRACE(fixture["model"].get<std::string>() + ": " +
                   conversation["name"].get<std::string>());
      const std::string out = rendered(fixture["template"], render_input(fixture, conversation));
      if (conversation.contains("expected")) {
        EXPECT_EQ(out, conversation["expected"].get<std::string>());
      } else {
        EXPECT_TRUE(out.starts_with("error: chat template: ")) << out;
      }
      ++n_cases;
    }
  }
  EXPECT_GT(n_cases, 850U);
}

TEST_F(ChatFixture, LanguageBehavesAsJinja2Does) {
  const OrderedJson fixture = language_fixture();
  RenderInput input{
      .messages_json = "[]", .extra_json = fixture["variables"].dump(), .now_unix_s = kFixtureTime};
  for (const OrderedJson& row : fixture["cases"]) {
    const std::string source = row["template"];
    const std::string out = rendered(source, input);
    if (row.contains("expected")) {
      EXPECT_EQ(out, row["expected"].get<std::string>()) << source;
    } else {
      EXPECT_TRUE(out.starts_with("error: chat template: "))
          << source << "\n  renders " << out << "\n  jinja2: " << row["error"];
    }
  }
  EXPECT_GT(fixture["cases"].size(), 900U);
}

}  // namespace
}  // namespace godwit::chat
