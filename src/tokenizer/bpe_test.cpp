#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tokenizer/byte_level.h"

namespace godwit::tokenizer {
namespace {

// A vocabulary of the 256 bytes and of every merge's result.
struct Merges {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;

  TokenIds ids() const {
    TokenIds ids;
    for (size_t i = 0; i < tokens.size(); ++i) {
      ids.try_emplace(tokens[i], static_cast<int32_t>(i));
    }
    return ids;
  }
  MergeTable table() const {
    const TokenIds words = ids();
    return MergeTable({.words = words,
                       .n_tokens = static_cast<int32_t>(tokens.size()),
                       .merges = merges,
                       .spelling = Spelling::kByteLevel,
                       .byte_tokens = find_byte_tokens(words)});
  }
};

Merges only_bytes() {
  Merges merges;
  for (int i = 0; i < 256; ++i) {
    merges.tokens.push_back(to_byte_level(std::string(1, static_cast<char>(i))));
  }
  return merges;
}

std::vector<std::string> texts(const Merges& merges, std::span<const TokenId> ids) {
  std::vector<std::string> out;
  for (const TokenId id : ids) out.push_back(merges.tokens[static_cast<size_t>(id.value)]);
  return out;
}

// The definition: while any adjacent pair has a merge, join the leftmost of the best rank.
std::vector<std::string> merge_by_definition(const Merges& merges, std::string_view word) {
  std::vector<std::string> parts;
  for (const char c : word) parts.push_back(to_byte_level({&c, 1}));
  while (true) {
    size_t best_rank = merges.merges.size();
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string pair = parts[i] + " " + parts[i + 1];
      const auto found = std::find(merges.merges.begin(), merges.merges.end(), pair);
      const auto rank = static_cast<size_t>(found - merges.merges.begin());
      if (rank < best_rank) {
        best_rank = rank;
        best_at = i;
      }
    }
    if (best_rank == merges.merges.size()) return parts;
    parts[best_at] += parts[best_at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(Bpe, JoinsTheBestRankFirst) {
  Merges merges = only_bytes();
  merges.merges = {"b c", "a b", "a bc"};
  for (const char* token : {"bc", "ab", "abc"}) merges.tokens.emplace_back(token);
  const MergeTable table = merges.table();
  BpeEncoder bpe(table);
  EXPECT_EQ(texts(merges, bpe.encode("abc")), std::vector<std::string>{"abc"});
  EXPECT_EQ(texts(merges, bpe.encode("abab")), (std::vector<std::string>{"ab", "ab"}));
  EXPECT_TRUE(bpe.encode("").empty());
}

TEST(Bpe, AgreesWithItsDefinitionOnRandomMerges) {
  RandomStream random(7);
  for (int round = 0; round < 400; ++round) {
    Merges merges = only_bytes();
    std::vector<std::string> parts{"a", "b", "c"};
    for (int i = 0; i < 12; ++i) {
      const std::string left = parts[random.below(parts.size())];
      const std::string right = parts[random.below(parts.size())];
      merges.merges.push_back(left + " " + right);
      if (std::find(merges.tokens.begin(), merges.tokens.end(), left + right) !=
          merges.tokens.end()) {
        continue;
      }
      merges.tokens.push_back(left + right);
      parts.push_back(left + right);
    }
    const MergeTable table = merges.table();
    BpeEncoder bpe(table);
    std::string word;
    for (uint64_t n = random.below(40); n > 0; --n) word += "abc"[random.below(3)];
    ASSERT_EQ(texts(merges, bpe.encode(word)), merge_by_definition(merges, word))
        << "round " << round << " word " << word;
  }
}

TEST(Bpe, TakesLinearlyManyStepsOnIdenticalCharacters) {
  Merges merges = only_bytes();
  std::string run = "a";
  for (int i = 0; i < 10; ++i) {
    merges.merges.push_back(run + " " + run);
    run += run;
    merges.tokens.push_back(run);
  }
  const MergeTable table = merges.table();
  BpeEncoder bpe(table);
  constexpr size_t kLength = 50'000;
  size_t bytes = 0;
  for (const std::string& text : texts(merges, bpe.encode(std::string(kLength, 'a')))) {
    bytes += text.size();
  }
  EXPECT_EQ(bytes, kLength);
  EXPECT_LE(bpe.queue_pops(), 3 * kLength);
}

TEST(Bpe, KeepsTheFirstOfTwoEqualMergesAndSkipsBrokenOnes) {
  Merges merges = only_bytes();
  merges.merges = {"a b", "b c", "a b", "", " ", "ab", "c ", "\xC4\xA0 a"};
  for (const char* token : {"ab", "bc",
                            "\xC4\xA0"
                            "a"})
    merges.tokens.emplace_back(token);
  const MergeTable table = merges.table();
  BpeEncoder bpe(table);
  EXPECT_EQ(texts(merges, bpe.encode("abc")), (std::vector<std::string>{"ab", "c"}));
  EXPECT_EQ(texts(merges, bpe.encode(" a")), std::vector<std::string>{"\xC4\xA0"
                                                                      "a"});
}

TEST(Bpe, MergesThroughTextsThatAreNoTokens) {
  Merges merges = only_bytes();
  merges.merges = {"a b", "ab c"};
  merges.tokens.emplace_back("abc");
  const MergeTable table = merges.table();
  BpeEncoder bpe(table);
  EXPECT_EQ(texts(merges, bpe.encode("abc")), std::vector<std::string>{"abc"});
  EXPECT_EQ(texts(merges, bpe.encode("abd")), (std::vector<std::string>{"a", "b", "d"}));
}

TEST(Bpe, LeavesOutBytesTheVocabularyLacks) {
  Merges merges;
  merges.tokens = {"a", "b"};
  const MergeTable table = merges.table();
  BpeEncoder bpe(table);
  EXPECT_EQ(texts(merges, bpe.encode("axb")), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace godwit::tokenizer
