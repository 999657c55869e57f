// What a model file says about its tokenizer, before anything is concluded from it: plain data.
// read_vocab() fills it from tokenizer.ggml.*; tests and the fuzz target write it by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "gguf/file.h"

namespace godwit::tokenizer {

struct Vocab {
  std::string model;                // "gpt2" is byte-level BPE
  std::string pre;                  // the pre-tokenizer; empty means "default"
  std::vector<std::string> tokens;  // index = id; byte-level spelling
  std::vector<int64_t> types;       // as tokenizer.ggml.token_type; empty: all are normal
  std::vector<std::string> merges;  // "left right", best first

  TokenId bos, eos, eot, eom;
  // Of fill-in-the-middle models; the last three end generation as well.
  TokenId fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep;
  std::optional<bool> add_bos;
};

// Errors: a key is missing or has a type that cannot stand for it. What the values say to each
// other is checked where they are used.
[[nodiscard]] Result<Vocab> read_vocab(const gguf::File& file);

}  // namespace godwit::tokenizer
