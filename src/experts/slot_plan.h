// How a budget of memory is cut into slots, each of which holds one expert in its packed form.
// Layers whose experts need different sizes get slots of different sizes (classes), so no slot is
// larger than what it holds; the sum of all slots is never more than the budget. Pure arithmetic:
// the caller (a backend) then provides `bytes` of memory and the store (store.h) fills the slots.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace godwit::experts {

inline constexpr uint64_t kSlotAlignment = 64;

enum class CacheKind : uint8_t {
  kFull,    // a slot for every expert
  kBudget,  // as many slots as fit in budget_mib
  kMapped,  // no slots: kernels read the mapped file, and the page cache decides what stays
};

struct CachePolicy {
  CacheKind kind = CacheKind::kFull;
  uint64_t budget_mib = 0;  // of kBudget

  friend bool operator==(const CachePolicy&, const CachePolicy&) = default;
};

// "full", "mmap", or a number of MiB. Errors: anything else, 0.
[[nodiscard]] Result<CachePolicy> parse_cache_policy(std::string_view text);

struct LayerSize {
  uint32_t n_experts = 0;     // 0: a dense layer
  uint64_t packed_bytes = 0;  // of one expert in its slot
};

// Where a slot lies in the memory that the backend lends.
struct SlotRange {
  uint64_t offset = 0;  // a multiple of kSlotAlignment
  uint64_t bytes = 0;

  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

struct SlotClass {
  uint64_t slot_bytes = 0;  // a multiple of kSlotAlignment
  uint32_t n_slots = 0;
  uint32_t n_experts = 0;  // of all layers of this class
  uint64_t offset = 0;     // of its first slot
};

struct SlotPlan {
  CacheKind kind = CacheKind::kFull;
  std::vector<SlotClass> classes;        // by size, ascending; empty for kMapped
  std::vector<uint32_t> class_of_layer;  // meaningless for dense layers
  uint64_t bytes = 0;                    // of memory to lend: the sum of all slots

  [[nodiscard]] SlotRange slot(uint32_t size_class, uint32_t index) const;
  [[nodiscard]] uint32_t n_slots() const;
};

// `max_in_use`: the most experts of one layer that are held at the same time (for one token, the
// number the router chooses); every class gets that many slots or all of its experts. Beyond that
// slots go to the class of which the smallest share is resident, so that a larger budget never has
// fewer slots in any class. Errors: the budget is too small, with the smallest that is not.
[[nodiscard]] Result<SlotPlan> plan_slots(std::span<const LayerSize> layers, CachePolicy policy,
                                          uint32_t max_in_use);

}  // namespace godwit::experts
