// What a model file says about its tokenizer, before anything is concluded from it: plain data.
// read_vocab() fills it from tokenizer.ggml.*; tests and the fuzz target write it by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "gguf/file.h"

namespace godwit::tokenizer {

struct Vocab {
  std::string name;                 // general.name: some models' tokenizers are known by it alone
  std::string model;                // "gpt2", "gemma4": byte-pair merging; "llama": SentencePiece
  std::string pre;                  // the pre-tokenizer; empty means "default"
  std::vector<std::string> tokens;  // index = id; as spelling.h says
  std::vector<int64_t> types;       // as tokenizer.ggml.token_type; empty: all are normal
  std::vector<std::string> merges;  // "left right", best first
  std::vector<double> scores;       // [n_tokens], of SentencePiece vocabularies

  TokenId bos, eos, eot, eom, unknown;
  // Of fill-in-the-middle models; the last three end generation as well.
  TokenId fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

inline constexpr std::string_view kSentencePieceModel = "llama";

// Error: a kind of vocabulary that Godwit has no encoder for, named in words.
[[nodiscard]] Status check_model(const Vocab& vocab);

// Errors: check_model's; a key is missing or has a type that cannot stand for it. What the values
// say to each other is checked where they are used.
[[nodiscard]] Result<Vocab> read_vocab(const gguf::File& file);

}  // namespace godwit::tokenizer
