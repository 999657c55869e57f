// A chat template comes with a model file from anywhere, messages from any client. The first byte
// chooses the inputs, the rest is the template. Whatever comes out, the marks must be well formed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "chat/template.h"

namespace {

using godwit::TextRange;
using godwit::chat::RenderInput;
using godwit::chat::Template;

constexpr const char* kMessages = R"([
  {"role": "system", "content": "Be <|im_end|> brief \u00e9\u2603"},
  {"role": "user", "content": "one\n two\t", "n": 3, "f": -2.5, "b": true},
  {"role": "assistant", "content": null, "tool_calls": [
    {"type": "function", "function": {"name": "f", "arguments": {"a": [1, {}], "b": "c"}}}]},
  {"role": "tool", "name": "f", "content": "{\"x\": 1}"},
  {"role": "user", "content": [{"type": "text", "text": "</think> A-b"}]}])";
constexpr const char* kTools = R"([{"type": "function", "function": {
  "name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}])";
constexpr const char* kExtra = R"({"enable_thinking": false, "d": {"k": "v", "items": 1},
  "words": ["b", "A", "c"], "nested": [[1, 2], [3, [4]]], "u": "<Us>"})";

RenderInput input_of(std::uint8_t choice) {
  return {.messages_json = (choice & 1) != 0 ? kMessages : "[]",
          .tools_json = (choice & 2) != 0 ? kTools : "",
          .extra_json = (choice & 4) != 0 ? kExtra : "",
          .bos_token = (choice & 8) != 0 ? "<s>" : "",
          .eos_token = "</s>",
          .add_generation_prompt = (choice & 16) != 0,
          .now_unix_s = 1722000896,
          .limits = {.max_steps = 100'000, .max_bytes = 1 << 22, .max_output_bytes = 1 << 20}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const auto parsed =
      Template::parse({reinterpret_cast<const char*>(data) + 1, size - 1});  // bytes as text
  if (!parsed) {
    return 0;
  }
  const auto out = parsed->render(input_of(data[0]));
  if (!out) {
    return 0;
  }
  std::size_t at = 0;
  for (const TextRange& range : out->user_ranges) {
    if (range.begin < at || range.begin >= range.end || range.end > out->text.size()) {
      std::abort();
    }
    at = range.end;
  }
  return 0;
}
