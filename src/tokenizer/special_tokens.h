// Finds the special tokens of a vocabulary in a text. Owns a trie of their texts; immutable.
// Longer tokens have the first choice anywhere in the text, of equal length the smaller id, of the
// same token the leftmost place: the order in which llama.cpp partitions. O(n log n) for n bytes
// times the length of the longest token.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "base/types.h"
#include "tokenizer/tokenizer.h"

namespace godwit::tokenizer {

// When the text of a special token means the token.
enum class Recognised {
  kEverywhere,       // user-defined white space, which can forge nothing: in user ranges as well
  kOutsideUserText,  // other user-defined tokens
  kWhenParsing,      // control and unknown tokens: there, and only with Specials::kParse
};

// White space beside it that a special token takes with it.
enum class Strips { kNothing, kBefore, kAfter };

struct SpecialToken {
  TokenId id;
  std::string_view text;  // not empty; copied
  Recognised recognised = Recognised::kWhenParsing;
  Strips strips = Strips::kNothing;
};

// A stretch of plain text, or one special token in its place.
struct Fragment {
  TextRange range;
  TokenId token;  // kNoToken: plain text
};

class SpecialTokens {
 public:
  explicit SpecialTokens(std::span<const SpecialToken> tokens);  // ascending ids

  // The fragments of `text` in order, together all of it but stripped white space. A token that
  // would touch a user range is text, unless it is recognised everywhere. `user_ranges` are
  // ascending and disjoint.
  [[nodiscard]] std::vector<Fragment> partition(std::string_view text, Specials specials,
                                                std::span<const TextRange> user_ranges) const;

 private:
  struct Node {
    int32_t first_child = -1;
    int32_t next_sibling = -1;
    int32_t parent = -1;
    int32_t token = -1;  // index in tokens_, or -1: no token ends here
    char byte = 0;
  };
  struct Token {
    TokenId id;
    size_t bytes = 0;
    Recognised recognised = Recognised::kWhenParsing;
    Strips strips = Strips::kNothing;
  };
  // A token found in the text, unless a longer one takes its place.
  struct Match {
    size_t begin;
    int32_t node;
  };
  // A token that has its place, and that place with the white space it strips.
  struct Taken {
    int32_t node;
    TextRange place;
    TextRange stripped;
  };

  [[nodiscard]] const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  [[nodiscard]] const Token& token_at(int32_t index) const {
    return tokens_[static_cast<size_t>(node(index).token)];
  }
  [[nodiscard]] TextRange range(const Match& match) const {
    return {match.begin, match.begin + token_at(match.node).bytes};
  }
  // The place and the free white space beside it that the token strips.
  [[nodiscard]] TextRange with_stripped(const Match& match, std::string_view text,
                                        const std::vector<bool>& is_taken) const;
  [[nodiscard]] int32_t child(int32_t parent, char byte) const;
  void insert(const SpecialToken& token);
  // The deepest node whose path `text` begins with.
  [[nodiscard]] int32_t deepest(std::string_view text) const;
  // From `match.node` towards the root, the first that ends a token which may stand there; -1:
  // none.
  [[nodiscard]] int32_t longest_allowed(const Match& match, Specials specials,
                                        std::span<const TextRange> user_ranges) const;
  // The tokens of the text, in order of their place.
  [[nodiscard]] std::vector<Taken> choose(std::string_view text, Specials specials,
                                          std::span<const TextRange> user_ranges) const;

  std::vector<Node> nodes_;
  std::vector<Token> tokens_;
};

}  // namespace godwit::tokenizer
