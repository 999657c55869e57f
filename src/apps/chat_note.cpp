#include "apps/chat_note.h"

#include <nlohmann/json.hpp>

namespace godwit::apps {

using nlohmann::json;

namespace {

json list_of(const std::vector<ChatMessage>& messages) {
  json list = json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  return list;
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string messages_json(const std::vector<ChatMessage>& messages) {
  return text_of(list_of(messages));
}

std::string chat_note(const std::vector<ChatMessage>& messages) {
  return text_of({{"messages", list_of(messages)}});
}

Result<std::vector<ChatMessage>> parse_chat_note(std::string_view note) {
  std::vector<ChatMessage> messages;
  if (note.empty()) return messages;
  const json parsed = json::parse(note, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("messages") || !parsed["messages"].is_array()) {
    return fail("the saved conversation is not a JSON object with a list of messages");
  }
  for (const json& entry : parsed["messages"]) {
    const auto text = [&](const char* key) -> const std::string* {
      const auto found = entry.find(key);
      return found != entry.end() && found->is_string() ? found->get_ptr<const std::string*>()
                                                        : nullptr;
    };
    if (!entry.is_object() || text("role") == nullptr || text("content") == nullptr) {
      return fail("message {} of the saved conversation has no role and content",
                  messages.size() + 1);
    }
    messages.push_back({.role = *text("role"), .content = *text("content")});
  }
  return messages;
}

}  // namespace godwit::apps
