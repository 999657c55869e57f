// DRY ("don't repeat yourself"): a penalty that grows with the length of the repetition a token
// would continue. Sequence breakers are texts at which a repetition ends; they are translated to
// tokens once, when the sampler is made.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace godwit::sampling {

// What the breakers need of a vocabulary.
struct TokenTexts {
  int32_t size = 0;
  std::function<std::string_view(TokenId)> bytes;
  std::function<std::vector<TokenId>(std::string_view)> encode;
};

class SequenceBreakers {
 public:
  SequenceBreakers() = default;
  // Every token that holds a breaker, or in whose end one begins that other tokens complete.
  SequenceBreakers(std::span<const std::string> texts, const TokenTexts& vocabulary);

  // Whether `head` alone holds a breaker.
  [[nodiscard]] bool is_breaker(TokenId head) const;
  // How many tokens have been added since the newest breaker ended; history.size() without one.
  [[nodiscard]] size_t tokens_since(std::span<const TokenId> history) const;

 private:
  using Tail = std::vector<TokenId>;  // what must follow the head; empty where nothing need
  void add(TokenId head, Tail tail);

  std::unordered_map<int32_t, std::vector<Tail>> tails_;
};

}  // namespace godwit::sampling
