#include "apps/synth_vocab.h"

#include <string>
#include <string_view>
#include <utility>

#include "gguf/writer.h"
#include "tokenizer/byte_level.h"

namespace godwit::apps {
namespace {

// Token types as the format numbers them.
constexpr int64_t kNormal = 1;
constexpr int64_t kControl = 3;

// ChatML, which many small models speak.
constexpr std::string_view kChatTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

}  // namespace

void append_vocab(uint32_t vocab, std::vector<gguf::KeyValue>& metadata) {
  std::vector<std::string> tokens;
  tokens.reserve(vocab);
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    tokens.push_back(tokenizer::to_byte_level(std::string_view(&c, 1)));
  }
  tokens.emplace_back("th");
  while (tokens.size() + 3 < vocab) {
    tokens.push_back(tokenizer::to_byte_level(fmt::format(" w{}", tokens.size())));
  }
  const auto end_of_text = static_cast<uint32_t>(tokens.size());
  const uint32_t end_of_turn = end_of_text + 2;
  tokens.insert(tokens.end(), {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
  std::vector<int64_t> types(tokens.size(), kNormal);
  for (size_t i = end_of_text; i < types.size(); ++i) types[i] = kControl;

  metadata.push_back(gguf::make_string("tokenizer.ggml.model", "gpt2"));
  metadata.push_back(gguf::make_string("tokenizer.ggml.pre", "gpt-2"));
  metadata.push_back(gguf::make_strings("tokenizer.ggml.tokens", std::move(tokens)));
  metadata.push_back(gguf::make_ints("tokenizer.ggml.token_type", std::move(types)));
  metadata.push_back(gguf::make_strings("tokenizer.ggml.merges", {"t h"}));
  metadata.push_back(gguf::make_uint("tokenizer.ggml.bos_token_id", end_of_text));
  metadata.push_back(gguf::make_uint("tokenizer.ggml.eos_token_id", end_of_turn));
  metadata.push_back(gguf::make_bool("tokenizer.ggml.add_bos_token", false));
  metadata.push_back(gguf::make_string("tokenizer.chat_template", std::string(kChatTemplate)));
}

}  // namespace godwit::apps
