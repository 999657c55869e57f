// What each token of a vocabulary is for: its kind, and whether generation ends with it. Much of
// this stands in no file and is known by the tokens' texts alone; the lists are those of llama.cpp
// (llama-vocab.cpp, llama_vocab::impl::load), so that both agree on where an answer ends.
#pragma once

#include <vector>

#include "base/result.h"
#include "tokenizer/spelling.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace godwit::tokenizer {

struct TokenRoles {
  std::vector<TokenKind> kinds;       // [n_tokens]
  std::vector<bool> ends_generation;  // [n_tokens]
};

// `ids` finds tokens by text. Errors: a list of types of the wrong length, a special id that is
// no token.
[[nodiscard]] Result<TokenRoles> make_roles(const Vocab& vocab, const TokenIds& ids);

}  // namespace godwit::tokenizer
