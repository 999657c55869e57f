// Chat templates that go by a name, for files that carry none: llama.cpp's names, and the same
// prompts as its formatters of these names write (tests/fixtures/named_templates.json). They are
// Jinja like a file's own, and parsed the same way; what a message says stays marked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat {

// What a file without a template gets, as upstream.
inline constexpr std::string_view kDefaultTemplate = "chatml";

// The Jinja source; nothing where no template goes by this name.
std::optional<std::string> named_template(std::string_view name);

// Every name, sorted.
std::vector<std::string_view> template_names();

}  // namespace godwit::chat
