// What `chat` writes beside a saved state: the messages of the conversation, as JSON. Read back, it
// is text that nobody vouches for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct ChatMessage {
  std::string role;
  std::string content;

  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// A JSON array, as templates take it; bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string messages_json(const std::vector<ChatMessage>& messages);

[[nodiscard]] std::string chat_note(const std::vector<ChatMessage>& messages);

// No messages for an empty note, which other commands write. Errors: anything else that
// chat_note() would not have written.
[[nodiscard]] Result<std::vector<ChatMessage>> parse_chat_note(std::string_view note);

}  // namespace godwit::apps
