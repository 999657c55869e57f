// Which expert is in which slot, and which slot goes next: a free one, else the least recently used
// that nobody has pinned. Knows neither files nor threads; the store calls it under its lock.
//
// A slot is free, or it belongs to an expert. It is pinned while somebody needs it to stay (a
// lease, or the read that fills it); when the last pin goes it becomes the most recently used.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experts/slot_plan.h"
#include "experts/source.h"

namespace godwit::experts {

using SlotIndex = uint32_t;
inline constexpr SlotIndex kNoSlot = UINT32_MAX;

class SlotTable {
 public:
  // n_experts: of each layer of the plan.
  SlotTable(const SlotPlan& plan, std::span<const uint32_t> n_experts);

  [[nodiscard]] SlotIndex find(ExpertKey key) const { return slot_of_[place(key)]; }
  [[nodiscard]] ExpertKey key(SlotIndex slot) const { return slots_[slot].key; }
  [[nodiscard]] SlotRange range(SlotIndex slot) const { return slots_[slot].range; }
  [[nodiscard]] uint32_t pins(SlotIndex slot) const { return slots_[slot].pins; }
  [[nodiscard]] uint32_t n_slots() const { return static_cast<uint32_t>(slots_.size()); }
  // Slots of the class that this layer's experts go to.
  [[nodiscard]] uint32_t capacity(uint32_t layer) const;
  [[nodiscard]] uint32_t size_class(SlotIndex slot) const { return slots_[slot].size_class; }
  [[nodiscard]] uint32_t size_class_of_layer(uint32_t layer) const {
    return class_of_layer_[layer];
  }

  struct Taken {
    SlotIndex slot = kNoSlot;
    std::optional<ExpertKey> evicted;
  };
  // Gives `key`, which has none, a slot with one pin. nullopt: every slot of its class is pinned.
  [[nodiscard]] std::optional<Taken> take(ExpertKey key);
  void pin(SlotIndex slot);
  void unpin(SlotIndex slot);
  // The slot's content is worthless: find() no longer knows it, and it is free after its last pin.
  void disown(SlotIndex slot);

 private:
  struct Slot {
    SlotRange range;
    ExpertKey key;
    uint32_t size_class = 0;
    uint32_t pins = 0;
    bool owned = false;  // belongs to `key`
    // Neighbours in the list of its class; kNoSlot at the ends. Meaningless while pinned.
    SlotIndex older = kNoSlot;
    SlotIndex newer = kNoSlot;
  };
  struct Class {
    SlotIndex oldest = kNoSlot;  // of the owned slots without pins
    SlotIndex newest = kNoSlot;
    std::vector<SlotIndex> free;
    uint32_t n_slots = 0;
  };

  [[nodiscard]] size_t place(ExpertKey key) const {
    return first_of_layer_[key.layer] + key.expert;
  }
  void unlink(SlotIndex slot);
  void append(SlotIndex slot);

  std::vector<Slot> slots_;
  std::vector<Class> classes_;
  std::vector<uint32_t> class_of_layer_;
  std::vector<size_t> first_of_layer_;  // in slot_of_
  std::vector<SlotIndex> slot_of_;      // of each expert, or kNoSlot
};

}  // namespace godwit::experts
