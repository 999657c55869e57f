#include "engine/draft_lookup.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace godwit::engine {
namespace {

constexpr size_t kMinSlots = size_t{1} << 10;
constexpr size_t kMaxSlots = size_t{1} << 17;  // 512 KiB for each length

}  // namespace

DraftLookup::DraftLookup(size_t n_tokens) {
  const size_t n_slots = std::bit_ceil(std::clamp(n_tokens, kMinSlots, kMaxSlots));
  for (Slots& slots : slots_) slots.assign(n_slots, 0);
}

size_t DraftLookup::slot_of(std::span<const TokenId> run) const {
  uint64_t hash = run.size();
  for (const TokenId token : run) {
    // The multiplier of SplitMix64; the high half carries the mixing.
    hash = (hash ^ static_cast<uint32_t>(token.value)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash & (slots_[0].size() - 1);
}

void DraftLookup::index(std::span<const TokenId> history) {
  check(n_indexed_ <= history.size(), "a lookup index is ahead of its history");
  for (size_t next = n_indexed_; next < history.size(); ++next) {
    for (size_t length = kMinMatch; length <= std::min(kMaxMatch, next); ++length) {
      const std::span<const TokenId> run = history.subspan(next - length, length);
      slots_[length - kMinMatch][slot_of(run)] = static_cast<uint32_t>(next);
    }
  }
  n_indexed_ = history.size();
}

Draft DraftLookup::propose(std::span<const TokenId> history, size_t n_max) {
  index(history);
  Draft draft;
  for (size_t length = std::min(kMaxMatch, history.size()); length >= kMinMatch; --length) {
    const std::span<const TokenId> run = history.last(length);
    const size_t next = slots_[length - kMinMatch][slot_of(run)];
    if (next < length || !std::ranges::equal(history.subspan(next - length, length), run)) continue;
    draft.match_length = length;
    for (size_t i = next; draft.tokens.size() < n_max; ++i) {
      draft.tokens.push_back(i < history.size() ? history[i] : draft.tokens[i - history.size()]);
    }
    break;
  }
  return draft;
}

}  // namespace godwit::engine
