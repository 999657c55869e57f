#include "experts/slot_table.h"

#include "base/check.h"

namespace godwit::experts {

SlotTable::SlotTable(const SlotPlan& plan, std::span<const uint32_t> n_experts)
    : class_of_layer_(plan.class_of_layer) {
  for (uint32_t c = 0; c < plan.classes.size(); ++c) {
    Class& size_class = classes_.emplace_back();
    size_class.n_slots = plan.classes[c].n_slots;
    for (uint32_t i = 0; i < size_class.n_slots; ++i) {
      size_class.free.push_back(static_cast<SlotIndex>(slots_.size()));
      slots_.push_back({.range = plan.slot(c, i), .key = {}, .size_class = c});
    }
  }
  size_t n = 0;
  for (const uint32_t of_layer : n_experts) {
    first_of_layer_.push_back(n);
    n += of_layer;
  }
  slot_of_.assign(n, kNoSlot);
}

uint32_t SlotTable::capacity(uint32_t layer) const {
  const uint32_t c = class_of_layer_[layer];
  return c < classes_.size() ? classes_[c].n_slots : 0;
}

std::optional<SlotTable::Taken> SlotTable::take(ExpertKey key) {
  check(find(key) == kNoSlot, "take: the expert has a slot");
  Class& size_class = classes_[class_of_layer_[key.layer]];
  Taken taken;
  if (!size_class.free.empty()) {
    taken.slot = size_class.free.back();
    size_class.free.pop_back();
  } else if (size_class.oldest != kNoSlot) {
    taken.slot = size_class.oldest;
    taken.evicted = slots_[taken.slot].key;
    unlink(taken.slot);
    slot_of_[place(*taken.evicted)] = kNoSlot;
  } else {
    return std::nullopt;
  }
  Slot& slot = slots_[taken.slot];
  slot.key = key;
  slot.pins = 1;
  slot.owned = true;
  slot_of_[place(key)] = taken.slot;
  return taken;
}

void SlotTable::pin(SlotIndex index) {
  Slot& slot = slots_[index];
  if (slot.pins == 0) unlink(index);
  ++slot.pins;
}

void SlotTable::unpin(SlotIndex index) {
  Slot& slot = slots_[index];
  check(slot.pins > 0, "unpin: the slot is not pinned");
  if (--slot.pins > 0) return;
  if (slot.owned) {
    append(index);
  } else {
    classes_[slot.size_class].free.push_back(index);
  }
}

void SlotTable::disown(SlotIndex index) {
  Slot& slot = slots_[index];
  check(slot.pins > 0 && slot.owned, "disown: the slot must be pinned and owned");
  slot_of_[place(slot.key)] = kNoSlot;
  slot.owned = false;
}

void SlotTable::unlink(SlotIndex index) {
  Slot& slot = slots_[index];
  Class& size_class = classes_[slot.size_class];
  (slot.older == kNoSlot ? size_class.oldest : slots_[slot.older].newer) = slot.newer;
  (slot.newer == kNoSlot ? size_class.newest : slots_[slot.newer].older) = slot.older;
}

void SlotTable::append(SlotIndex index) {
  Slot& slot = slots_[index];
  Class& size_class = classes_[slot.size_class];
  slot.older = size_class.newest;
  slot.newer = kNoSlot;
  (slot.older == kNoSlot ? size_class.oldest : slots_[slot.older].newer) = index;
  size_class.newest = index;
}

}  // namespace godwit::experts
