#include "testing/models/tiny_vocabulary.h"

#include <string>

namespace godwit::testing {
namespace {

// The byte-level alphabet: printable Latin-1 stands for itself, the rest for U+0100 onward.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> tokens;
  int next = 0;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
    const int code = printable ? b : 256 + next++;
    std::string text;
    if (code < 128) {
      text.push_back(static_cast<char>(code));
    } else {
      text.push_back(static_cast<char>(0xc0 | (code >> 6)));
      text.push_back(static_cast<char>(0x80 | (code & 63)));
    }
    tokens.push_back(text);
  }
  return tokens;
}

}  // namespace

std::vector<gguf::KeyValue> tiny_vocabulary() {
  std::vector<std::string> tokens = byte_alphabet();
  while (tokens.size() + 1 < kTinyVocab) {
    tokens.push_back("<f" + std::to_string(tokens.size()) + ">");
  }
  tokens.push_back("<|end|>");
  std::vector<int64_t> kinds(kTinyVocab, 1);
  kinds.back() = 3;
  return {gguf::make_string("tokenizer.ggml.model", "gpt2"),
          gguf::make_string("tokenizer.ggml.pre", "gpt-2"),
          gguf::make_strings("tokenizer.ggml.tokens", tokens),
          gguf::make_ints("tokenizer.ggml.token_type", kinds),
          gguf::make_strings("tokenizer.ggml.merges", {}),
          gguf::make_uint("tokenizer.ggml.eos_token_id", kTinyVocab - 1)};
}

}  // namespace godwit::testing
