// The tree against the simplest thing that could be right: a list of what was put in.
#include "engine/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace godwit::engine {
namespace {

using Tokens = std::vector<TokenId>;

constexpr uint64_t kPositionBytes = 8;

Tokens tokens_of(std::string_view text) {
  Tokens tokens;
  for (const char c : text) tokens.push_back({c});
  return tokens;
}

// The state of a position is a function of all tokens up to it, as a model's is.
uint64_t state_after(std::span<const TokenId> tokens) {
  uint64_t hash = 1;
  for (const TokenId token : tokens) hash = random_bits(hash, static_cast<uint64_t>(token.value));
  return hash;
}

std::vector<std::byte> fixed_after(std::span<const TokenId> tokens, uint64_t bytes) {
  std::vector<std::byte> fixed(bytes);
  const uint64_t value = ~state_after(tokens);
  if (bytes > 0) std::memcpy(fixed.data(), &value, sizeof value);
  return fixed;
}

uint64_t insert(PrefixTree& tree, const Tokens& tokens, uint64_t fixed_bytes) {
  return tree.insert(tokens, fixed_after(tokens, fixed_bytes),
                     [&](backend::PositionRange range, std::span<std::byte> out) {
                       ASSERT_EQ(out.size(), range.size() * kPositionBytes);
                       for (uint64_t p = range.begin; p < range.end; ++p) {
                         const uint64_t state = state_after(std::span(tokens).first(p + 1));
                         std::memcpy(out.data() + (p - range.begin) * kPositionBytes, &state, 8);
                       }
                     });
}

// Finds, and checks that whatever came back is the state of exactly these tokens.
uint64_t find(PrefixTree& tree, const Tokens& tokens, uint64_t fixed_bytes) {
  const PrefixMatch match = tree.find(tokens);
  EXPECT_LE(match.n_tokens, tokens.size());
  uint64_t position = 0;
  for (const PrefixMatch::Piece& piece : match.pieces) {
    EXPECT_EQ(piece.range.begin, position);
    EXPECT_EQ(piece.positions.size(), piece.range.size() * kPositionBytes);
    for (; position < piece.range.end; ++position) {
      const uint64_t state = state_after(std::span(tokens).first(position + 1));
      EXPECT_EQ(
          std::memcmp(piece.positions.data() + (position - piece.range.begin) * kPositionBytes,
                      &state, 8),
          0)
          << position;
    }
  }
  EXPECT_EQ(position, match.n_tokens);
  if (match.n_tokens > 0) {
    const auto fixed = fixed_after(std::span(tokens).first(match.n_tokens), fixed_bytes);
    EXPECT_TRUE(std::ranges::equal(match.fixed, fixed));
  }
  return match.n_tokens;
}

PrefixTreeSettings with_budget(uint64_t bytes, uint64_t fixed_bytes) {
  return {.budget_bytes = bytes,
          .position_bytes = kPositionBytes,
          .fixed_bytes = fixed_bytes,
          .max_node_positions = 4};
}

TEST(PrefixTree, ReturnsToAnyPositionWhereAttentionIsAllThereIs) {
  PrefixTree tree(with_budget(1 << 20, 0));
  EXPECT_EQ(find(tree, tokens_of("hello"), 0), 0u);
  EXPECT_EQ(insert(tree, tokens_of("hello world"), 0), 11u);
  EXPECT_EQ(find(tree, tokens_of("hello there"), 0), 6u);
  EXPECT_EQ(find(tree, tokens_of("hello world, again"), 0), 11u);
  EXPECT_EQ(find(tree, tokens_of("help"), 0), 3u);
  EXPECT_EQ(find(tree, tokens_of("yellow"), 0), 0u);
  EXPECT_EQ(insert(tree, tokens_of("help me"), 0), 7u);
  EXPECT_EQ(find(tree, tokens_of("hello world"), 0), 11u);
  EXPECT_EQ(find(tree, tokens_of("help me!"), 0), 7u);
}

TEST(PrefixTree, ReturnsOnlyToSnapshotsWhereThereIsAFixedPart) {
  PrefixTree tree(with_budget(1 << 20, 16));
  insert(tree, tokens_of("hello "), 16);
  insert(tree, tokens_of("hello world"), 16);
  EXPECT_EQ(find(tree, tokens_of("hello world!"), 16), 11u);
  EXPECT_EQ(find(tree, tokens_of("hello work"), 16), 6u);
  EXPECT_EQ(find(tree, tokens_of("hell"), 16), 0u);
  // A snapshot inside what is there already, and one that makes a branch.
  insert(tree, tokens_of("hell"), 16);
  EXPECT_EQ(find(tree, tokens_of("hellish"), 16), 4u);
  insert(tree, tokens_of("hello wonder"), 16);
  EXPECT_EQ(find(tree, tokens_of("hello wonderful"), 16), 12u);
  EXPECT_EQ(find(tree, tokens_of("hello won"), 16), 6u);
  EXPECT_EQ(find(tree, tokens_of("hello world"), 16), 11u);
}

TEST(PrefixTree, AsksForTheStateOfNewPositionsOnly) {
  PrefixTree tree(with_budget(1 << 20, 0));
  insert(tree, tokens_of("abcdef"), 0);
  uint64_t asked = 0;
  tree.insert(tokens_of("abcxyz"), {}, [&](backend::PositionRange range, std::span<std::byte>) {
    EXPECT_GE(range.begin, 3u);
    asked += range.size();
  });
  EXPECT_EQ(asked, 3u);
}

TEST(PrefixTree, DropsWhatWasUsedLongestAgo) {
  const uint64_t one = PrefixTree::kNodeBytes + 4 * (kPositionBytes + sizeof(TokenId));
  PrefixTree tree(with_budget(3 * one, 0));
  for (const char* text : {"aaaa", "bbbb", "cccc"}) insert(tree, tokens_of(text), 0);
  EXPECT_EQ(tree.bytes(), 3 * one);
  EXPECT_EQ(find(tree, tokens_of("aaaa"), 0), 4u);
  insert(tree, tokens_of("dddd"), 0);
  EXPECT_EQ(find(tree, tokens_of("bbbb"), 0), 0u);
  EXPECT_EQ(find(tree, tokens_of("aaaa"), 0), 4u);
  EXPECT_EQ(find(tree, tokens_of("cccc"), 0), 4u);
  EXPECT_EQ(find(tree, tokens_of("dddd"), 0), 4u);
}

TEST(PrefixTree, KeepsTheBeginningOfWhatDoesNotFit) {
  const uint64_t one = PrefixTree::kNodeBytes + 4 * (kPositionBytes + sizeof(TokenId));
  PrefixTree tree(with_budget(2 * one, 0));
  EXPECT_EQ(insert(tree, tokens_of("abcdefghijkl"), 0), 8u);
  EXPECT_EQ(find(tree, tokens_of("abcdefghijkl"), 0), 8u);
  // Room for half a node.
  PrefixTree small(with_budget(PrefixTree::kNodeBytes + 2 * (kPositionBytes + sizeof(TokenId)), 0));
  EXPECT_EQ(insert(small, tokens_of("abcd"), 0), 2u);
  // None at all.
  PrefixTree none(with_budget(0, 0));
  EXPECT_EQ(insert(none, tokens_of("abcd"), 0), 0u);
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(PrefixTree, CountsEveryNodeAndEveryPosition) {
  const auto counted = [](uint64_t nodes, uint64_t positions, uint64_t fixed) {
    return nodes * PrefixTree::kNodeBytes + positions * (kPositionBytes + sizeof(TokenId)) +
           fixed * 16;
  };
  PrefixTree tree(with_budget(1 << 20, 0));
  insert(tree, tokens_of("abcdefgh"), 0);
  EXPECT_EQ(tree.bytes(), counted(2, 8, 0));
  insert(tree, tokens_of("abcdefxy"), 0);  // cuts "efgh" in two
  EXPECT_EQ(tree.bytes(), counted(4, 10, 0));
  EXPECT_EQ(tree.n_nodes(), 4u);
  PrefixTree snapshots(with_budget(1 << 20, 16));
  insert(snapshots, tokens_of("abcdefgh"), 16);
  EXPECT_EQ(snapshots.bytes(), counted(1, 8, 1));
  insert(snapshots, tokens_of("abcd"), 16);
  EXPECT_EQ(snapshots.bytes(), counted(2, 8, 2));
}

// What the tree should know, and what it would take without a budget.
class Model {
 public:
  void insert(Tokens tokens) { all_.push_back(std::move(tokens)); }
  [[nodiscard]] uint64_t longest(const Tokens& tokens, bool has_fixed) const {
    uint64_t best = 0;
    for (const Tokens& known : all_) {
      const size_t n = std::min(known.size(), tokens.size());
      const auto differs = std::mismatch(
          known.begin(), known.begin() + static_cast<std::ptrdiff_t>(n), tokens.begin());
      const auto common = static_cast<uint64_t>(differs.first - known.begin());
      if (!has_fixed || common == known.size()) best = std::max(best, common);
    }
    return best;
  }

 private:
  std::vector<Tokens> all_;
};

// Few kinds of tokens, so that prefixes are shared and nodes are cut; sometimes a known one grown.
Tokens random_tokens(RandomStream& random, const Tokens& last) {
  Tokens tokens;
  if (random.below(3) == 0)
    tokens.assign(last.begin(),
                  last.begin() + static_cast<std::ptrdiff_t>(random.below(last.size() + 1)));
  const uint64_t n = tokens.size() + random.below(12) + 1;
  while (tokens.size() < n) tokens.push_back({static_cast<int32_t>(random.below(3))});
  return tokens;
}

struct RandomCase {
  uint64_t seed;
  uint64_t budget;
  uint64_t fixed_bytes;
};

void run_case(const RandomCase& c) {
  SCOPED_TRACE(::testing::Message()
               << "seed " << c.seed << " budget " << c.budget << " fixed " << c.fixed_bytes);
  PrefixTree tree(with_budget(c.budget, c.fixed_bytes));
  Model model;
  RandomStream random(c.seed);
  Tokens last;
  for (int i = 0; i < 400; ++i) {
    const Tokens tokens = random_tokens(random, last);
    if (random.below(2) == 0) {
      const uint64_t held = insert(tree, tokens, c.fixed_bytes);
      model.insert(tokens);
      // What was just put in is there: nothing was dropped for nothing.
      const uint64_t found = find(tree, tokens, c.fixed_bytes);
      if (c.fixed_bytes == 0) {
        ASSERT_EQ(found, held);
      }
    } else {
      const uint64_t found = find(tree, tokens, c.fixed_bytes);
      const uint64_t most = model.longest(tokens, c.fixed_bytes > 0);
      ASSERT_LE(found, most);
      if (c.budget >= (1u << 24)) {
        ASSERT_EQ(found, most);
      }
    }
    ASSERT_LE(tree.bytes(), c.budget);
    last = tokens;
  }
}

TEST(PrefixTree, AgreesWithAListOfWhatWasPutIn) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const uint64_t fixed_bytes : {0u, 16u}) {
      run_case({seed, 1 << 24, fixed_bytes});
      run_case({seed, 1000 + 2931 * seed, fixed_bytes});
    }
  }
}

}  // namespace
}  // namespace godwit::engine
