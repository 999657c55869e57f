#include "engine/prefix_tree.h"

#include <algorithm>

#include "base/check.h"

namespace godwit::engine {

struct PrefixTree::Node {
  Node* parent = nullptr;
  uint64_t first = 0;            // position of tokens[0]
  std::vector<TokenId> tokens;   // of its own range, at least one
  std::vector<std::byte> state;  // [tokens.size(), position_bytes]
  std::vector<std::byte> fixed;  // after the last token; empty where it is not known
  std::map<TokenId, std::unique_ptr<Node>> children;  // by their first tokens
  std::list<Node*>::iterator place;

  [[nodiscard]] uint64_t end() const { return first + tokens.size(); }
};

struct PrefixTree::Place {
  Node* node = nullptr;  // the last of which at least one token matched, or the root
  size_t matched = 0;    // of that node's tokens
};

PrefixTree::PrefixTree(const PrefixTreeSettings& settings)
    : settings_(settings), root_(std::make_unique<Node>()) {
  check(settings.max_node_positions > 0, "nodes of at least one position");
}

PrefixTree::~PrefixTree() {
  // Leaves first: a chain of nodes as long as a context must not be freed by recursion.
  while (!order_.empty()) drop(order_.back());
}

PrefixTree::Place PrefixTree::walk(std::span<const TokenId> tokens) {
  Place place{.node = root_.get(), .matched = 0};
  while (!tokens.empty() && place.matched == place.node->tokens.size()) {
    const auto child = place.node->children.find(tokens.front());
    if (child == place.node->children.end()) break;
    Node* const node = child->second.get();
    const size_t n = std::min(tokens.size(), node->tokens.size());
    const auto differs =
        std::mismatch(node->tokens.begin(), node->tokens.begin() + static_cast<std::ptrdiff_t>(n),
                      tokens.begin());
    place = {.node = node, .matched = static_cast<size_t>(differs.second - tokens.begin())};
    tokens = tokens.subspan(place.matched);
  }
  return place;
}

// From the node up, so that parents end up in front of their children.
void PrefixTree::touch(Node* node) {
  for (; node != root_.get(); node = node->parent) {
    order_.splice(order_.begin(), order_, node->place);
  }
}

PrefixMatch PrefixTree::find(std::span<const TokenId> tokens) {
  auto [node, matched] = walk(tokens);
  PrefixMatch match;
  if (settings_.fixed_bytes > 0) {
    if (matched < node->tokens.size() || node->fixed.empty()) matched = 0;
    while (node != root_.get() && matched == 0) {
      node = node->parent;
      matched = node->fixed.empty() ? 0 : node->tokens.size();
    }
    match.fixed = node->fixed;
  }
  touch(node);
  match.n_tokens = node->first + matched;
  for (; node != root_.get(); node = node->parent) {
    match.pieces.push_back(
        {.range = {node->first, node->first + matched},
         .positions =
             std::span<const std::byte>(node->state).first(matched * settings_.position_bytes)});
    matched = node->parent->tokens.size();
  }
  std::reverse(match.pieces.begin(), match.pieces.end());
  return match;
}

uint64_t PrefixTree::cost(uint64_t n_positions, uint64_t fixed_bytes) const {
  return kNodeBytes + n_positions * (sizeof(TokenId) + settings_.position_bytes) + fixed_bytes;
}

void PrefixTree::drop(Node* leaf) {
  check(leaf->children.empty(), "only leaves are dropped");
  bytes_ -= cost(leaf->tokens.size(), leaf->fixed.size());
  order_.erase(leaf->place);
  leaf->parent->children.erase(leaf->tokens.front());
}

// Whether `wanted` more bytes fit, after dropping what was used before `keep`, which has just been
// touched: it and its ancestors stay.
bool PrefixTree::make_room(uint64_t wanted, const Node* keep) {
  if (wanted > settings_.budget_bytes) return false;
  while (bytes_ > settings_.budget_bytes - wanted) {
    if (order_.empty() || order_.back() == keep) return false;
    drop(order_.back());
  }
  return true;
}

// Cuts a node in two before tokens[at] and returns the first; the second keeps what it was. Takes
// the bytes of one more node, for which there must be room.
PrefixTree::Node* PrefixTree::split(Node* node, size_t at) {
  auto head = std::make_unique<Node>();
  const auto cut = static_cast<std::ptrdiff_t>(at);
  const auto byte_cut = static_cast<std::ptrdiff_t>(at * settings_.position_bytes);
  head->parent = node->parent;
  head->first = node->first;
  head->tokens.assign(node->tokens.begin(), node->tokens.begin() + cut);
  head->state.assign(node->state.begin(), node->state.begin() + byte_cut);
  head->place = order_.insert(node->place, head.get());  // in front of its child

  std::unique_ptr<Node>& slot = node->parent->children.at(head->tokens.front());
  std::unique_ptr<Node> tail = std::move(slot);
  slot = std::move(head);
  // Moved into vectors of their own: erasing would keep the old capacity, which nobody counts.
  tail->tokens = std::vector<TokenId>(tail->tokens.begin() + cut, tail->tokens.end());
  tail->state = std::vector<std::byte>(tail->state.begin() + byte_cut, tail->state.end());
  tail->first += at;
  tail->parent = slot.get();
  const TokenId key = tail->tokens.front();
  slot->children.emplace(key, std::move(tail));
  bytes_ += kNodeBytes;
  return slot.get();
}

PrefixTree::Node* PrefixTree::add(Node* parent, std::span<const TokenId> tokens, uint64_t first) {
  auto node = std::make_unique<Node>();
  node->parent = parent;
  node->first = first;
  node->tokens.assign(tokens.begin(), tokens.end());
  node->state.resize(tokens.size() * settings_.position_bytes);
  node->place = order_.insert(order_.begin(), node.get());
  bytes_ += cost(tokens.size(), 0);
  Node* const added = node.get();
  parent->children.emplace(tokens.front(), std::move(node));
  touch(added);
  return added;
}

// Positions of one node that can be had by dropping everything but `keep` and its ancestors.
uint64_t PrefixTree::fitting_positions(const Node* keep, uint64_t fixed_bytes) const {
  uint64_t kept = cost(0, fixed_bytes);
  for (; keep != root_.get(); keep = keep->parent) {
    kept += cost(keep->tokens.size(), keep->fixed.size());
  }
  if (kept >= settings_.budget_bytes) return 0;
  return (settings_.budget_bytes - kept) / (sizeof(TokenId) + settings_.position_bytes);
}

uint64_t PrefixTree::insert(std::span<const TokenId> tokens, std::span<const std::byte> fixed,
                            const Fill& fill) {
  check(fixed.size() == settings_.fixed_bytes, "a fixed part of another size");
  auto [node, matched] = walk(tokens);
  touch(node);
  uint64_t held = node->first + matched;
  const bool has_fixed = settings_.fixed_bytes > 0;
  if (held == tokens.size() && !has_fixed) return held;
  if (matched < node->tokens.size()) {
    if (!make_room(kNodeBytes, node)) return held;
    node = split(node, matched);
  }
  while (held < tokens.size()) {
    uint64_t n = tokens.size() - held;
    const uint64_t fits = fitting_positions(node, fixed.size());
    if (has_fixed ? n > fits : fits == 0) return held;
    if (!has_fixed) n = std::min<uint64_t>({n, fits, settings_.max_node_positions});
    if (!make_room(cost(n, fixed.size()), node)) return held;
    node = add(node, tokens.subspan(held, n), held);
    fill({held, held + n}, node->state);
    held += n;
  }
  if (has_fixed && node != root_.get() && node->fixed.empty() && make_room(fixed.size(), node)) {
    node->fixed.assign(fixed.begin(), fixed.end());
    bytes_ += fixed.size();
  }
  return held;
}

}  // namespace godwit::engine
