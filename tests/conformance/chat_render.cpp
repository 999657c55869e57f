// Renders chat templates for tools/compare_chat_templates.py: one JSON object a line comes in
// ({"template", "bos_token", "eos_token", "messages", and "tools", "extra",
// "add_generation_prompt" where given}), one goes out: {"text"} or {"error"}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/template.h"

namespace {

using godwit::chat::Template;
using Json = nlohmann::ordered_json;

// What the fixtures take for now: 2024-07-26 13:34:56 UTC.
constexpr std::int64_t kNow = 1722000896;

Json answer(const Json& request) {
  const auto part = [&](const char* key) {
    return request.contains(key) ? request[key].dump() : std::string();
  };
  const auto parsed = Template::parse(request["template"].get<std::string>());
  if (!parsed) return {{"error", parsed.error().message}};
  const auto out =
      parsed->render({.messages_json = part("messages"),
                      .tools_json = part("tools"),
                      .extra_json = part("extra"),
                      .bos_token = request["bos_token"],
                      .eos_token = request["eos_token"],
                      .add_generation_prompt = request.value("add_generation_prompt", true),
                      .now_unix_s = kNow});
  if (!out) return {{"error", out.error().message}};
  return {{"text", out->text}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(Json::parse(line)).dump(-1, ' ', true) << '\n';
  }
}
