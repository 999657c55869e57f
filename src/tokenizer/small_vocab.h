// A vocabulary small enough to reason about, for tests and the fuzz target: every byte, a few
// merges, and special tokens of each kind, some of which contain one another.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tokenizer/byte_level.h"
#include "tokenizer/spelling.h"
#include "tokenizer/vocab.h"

namespace godwit::tokenizer {

inline constexpr int64_t kNormalType = 1;
inline constexpr int64_t kUnknownType = 2;
inline constexpr int64_t kControlType = 3;
inline constexpr int64_t kUserDefinedType = 4;
inline constexpr int64_t kByteType = 6;

// Appends a token and gives its id.
inline TokenId add_token(Vocab& vocab, std::string_view text, int64_t type) {
  vocab.tokens.emplace_back(text);
  vocab.types.push_back(type);
  return {static_cast<int32_t>(vocab.tokens.size() - 1)};
}

// Ids 0 to 255 are the bytes; then one token for each merge; then the special tokens.
inline Vocab small_vocab(std::string_view pre) {
  Vocab vocab;
  vocab.model = "gpt2";
  vocab.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add_token(vocab, to_byte_level({&c, 1}), kNormalType);
  }
  struct Merge {
    std::string_view left;
    std::string_view right;
  };
  const Merge merges[] = {{"a", "a"},      {"aa", "aa"},  {"h", "e"},     {"l", "l"},
                          {"he", "ll"},    {"hell", "o"}, {" ", "hello"}, {" ", " "},
                          {"  ", "  "},    {"|", ">"},    {"\n", "\n"},   {"1", "2"},
                          {"\xC3", "\xA9"}};
  for (const Merge& merge : merges) {
    const std::string left = to_byte_level(merge.left);
    const std::string right = to_byte_level(merge.right);
    vocab.merges.push_back(left + " " + right);
    add_token(vocab, left + right, kNormalType);
  }
  vocab.bos = add_token(vocab, "<|start|>", kControlType);
  vocab.eos = add_token(vocab, "<|stop|>", kControlType);
  add_token(vocab, "<|im_end|>", kControlType);
  add_token(vocab, "<|", kUserDefinedType);
  add_token(vocab, "<tool>", kUserDefinedType);
  add_token(vocab, "<tool><tool>", kUserDefinedType);
  return vocab;
}

// The same for SentencePiece: the special tokens first, then the bytes, then characters and what
// they merge to, better the earlier.
inline Vocab small_piece_vocab() {
  Vocab vocab;
  vocab.model = "llama";
  vocab.unknown = add_token(vocab, "<unk>", kUnknownType);
  vocab.bos = add_token(vocab, "<s>", kControlType);
  vocab.eos = add_token(vocab, "</s>", kControlType);
  add_token(vocab, "<|im_end|>", kControlType);
  add_token(vocab, "<tool>", kUserDefinedType);
  add_token(vocab, "\n\n", kUserDefinedType);
  for (int byte = 0; byte < 256; ++byte) {
    add_token(vocab, fmt::format("<0x{:02X}>", byte), kByteType);
  }
  vocab.scores.assign(vocab.tokens.size(), 0.0);
  const std::string space(kEscapedSpace);
  double score = -1;
  for (const std::string& piece : {space + space,
                                   space + "hello",
                                   space + "he",
                                   std::string("ll"),
                                   std::string("llo"),
                                   std::string("he"),
                                   std::string("aa"),
                                   std::string("aaaa"),
                                   std::string("<s"),
                                   std::string("<s>x"),
                                   space,
                                   std::string("h"),
                                   std::string("e"),
                                   std::string("l"),
                                   std::string("o"),
                                   std::string("a"),
                                   std::string("<"),
                                   std::string("s"),
                                   std::string(">"),
                                   std::string("\xC3\xA9")}) {
    add_token(vocab, piece, kNormalType);
    vocab.scores.push_back(score--);
  }
  return vocab;
}

}  // namespace godwit::tokenizer
