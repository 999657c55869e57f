// States of token prefixes that were computed once, in a bounded amount of memory: a tree keyed by
// token ids in which a node owns the state of its own range of positions, and, where a model has a
// fixed part (backend/state.h), that part at its end. The least recently used leaves go first. It
// never computes, knows no backend and no session; sessions of one engine may share it, one at a
// time.
//
// Without a fixed part every position of a node can be returned to. With one, only the ends of
// nodes that have it, since a recurrent state cannot be rolled back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/state.h"
#include "base/types.h"

namespace godwit::engine {

struct PrefixTreeSettings {
  uint64_t budget_bytes = 0;    // of everything below; never exceeded between calls
  uint64_t position_bytes = 0;  // StateShape's
  uint64_t fixed_bytes = 0;
  // Nodes without a fixed part are cut this long, so that the end of a long prefix can be given
  // up without its beginning.
  size_t max_node_positions = 512;
};

// What the tree has of a prefix; the spans are good until the tree changes.
struct PrefixMatch {
  struct Piece {
    backend::PositionRange range;
    std::span<const std::byte> positions;  // [range.size(), position_bytes]
  };
  uint64_t n_tokens = 0;
  std::vector<Piece> pieces;  // cover [0, n_tokens) in order
  std::span<const std::byte> fixed;
};

class PrefixTree {
 public:
  explicit PrefixTree(const PrefixTreeSettings& settings);
  PrefixTree(PrefixTree&&) = delete;
  ~PrefixTree();

  // The longest prefix of `tokens` that can be returned to; it counts as used now.
  [[nodiscard]] PrefixMatch find(std::span<const TokenId> tokens);

  // Writes the state of positions it is asked for: [range.size(), position_bytes].
  using Fill = std::function<void(backend::PositionRange, std::span<std::byte>)>;
  // Takes the state of `tokens` in, asking `fill` only for positions that are not here yet; `fixed`
  // is the fixed part after the last one. Drops what was used longest ago to make room, and takes
  // less, or nothing, where even that does not suffice. Returns how many leading tokens are held.
  uint64_t insert(std::span<const TokenId> tokens, std::span<const std::byte> fixed,
                  const Fill& fill);

  // What the nodes take: tokens, state, and an allowance of kNodeBytes each.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] size_t n_nodes() const { return order_.size(); }
  static constexpr uint64_t kNodeBytes = 512;

 private:
  struct Node;
  struct Place;  // where walking down along some tokens ends

  [[nodiscard]] Place walk(std::span<const TokenId> tokens);
  void touch(Node* node);
  [[nodiscard]] uint64_t cost(uint64_t n_positions, uint64_t fixed_bytes) const;
  [[nodiscard]] bool make_room(uint64_t wanted, const Node* keep);
  void drop(Node* leaf);
  [[nodiscard]] Node* split(Node* node, size_t at);
  [[nodiscard]] Node* add(Node* parent, std::span<const TokenId> tokens, uint64_t first);
  [[nodiscard]] uint64_t fitting_positions(const Node* keep, uint64_t fixed_bytes) const;

  PrefixTreeSettings settings_;
  std::unique_ptr<Node> root_;  // no tokens; not counted
  // Most recently used first. A node is never used later than its parent, so the last is a leaf.
  std::list<Node*> order_;
  uint64_t bytes_ = 0;
};

}  // namespace godwit::engine
