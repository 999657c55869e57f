#include "experts/slot_plan.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "base/bits.h"

namespace godwit::experts {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kMaxBudgetMib = std::numeric_limits<uint64_t>::max() / kMib;

// The slots every class must have.
uint32_t least_slots(const SlotClass& size_class, uint32_t max_in_use) {
  return std::min(size_class.n_experts, std::max(max_in_use, 1u));
}

// Classes with their sizes and numbers of experts; no slots yet.
Result<SlotPlan> classify(std::span<const LayerSize> layers) {
  std::map<uint64_t, uint64_t> experts_of_size;
  for (const LayerSize& layer : layers) {
    if (layer.n_experts == 0) continue;
    if (layer.packed_bytes == 0 || layer.packed_bytes > uint64_t{1} << 40) {
      return fail("experts: an expert of {} packed bytes, expected 1 to 2^40", layer.packed_bytes);
    }
    experts_of_size[round_up(layer.packed_bytes, kSlotAlignment)] += layer.n_experts;
  }
  SlotPlan plan;
  uint64_t sum = 0;
  for (const auto& [slot_bytes, n_experts] : experts_of_size) {
    const auto bytes = checked_mul(slot_bytes, n_experts);
    const auto total = bytes ? checked_add(sum, *bytes) : bytes;
    if (!total || n_experts > std::numeric_limits<uint32_t>::max() / 2) {
      return fail("experts: {} experts of {} bytes are more than can be addressed", n_experts,
                  slot_bytes);
    }
    sum = *total;
    plan.classes.push_back(
        {.slot_bytes = slot_bytes, .n_experts = static_cast<uint32_t>(n_experts)});
  }
  for (const LayerSize& layer : layers) {
    const uint64_t size = round_up(layer.packed_bytes, kSlotAlignment);
    const auto it = std::ranges::lower_bound(plan.classes, size, {}, &SlotClass::slot_bytes);
    plan.class_of_layer.push_back(static_cast<uint32_t>(it - plan.classes.begin()));
  }
  return plan;
}

// The class with the smallest resident share that still lacks slots, or nullptr.
SlotClass* neediest(std::vector<SlotClass>& classes) {
  SlotClass* found = nullptr;
  for (SlotClass& c : classes) {
    if (c.n_slots == c.n_experts) continue;
    // c.n_slots / c.n_experts < found's, without rounding; both products are below 2^63.
    if (found == nullptr ||
        uint64_t{c.n_slots} * found->n_experts < uint64_t{found->n_slots} * c.n_experts) {
      found = &c;
    }
  }
  return found;
}

void set_offsets(SlotPlan& plan) {
  plan.bytes = 0;
  for (SlotClass& c : plan.classes) {
    c.offset = plan.bytes;
    plan.bytes += c.slot_bytes * c.n_slots;
  }
}

}  // namespace

Result<CachePolicy> parse_cache_policy(std::string_view text) {
  if (text == "full") return CachePolicy{.kind = CacheKind::kFull};
  if (text == "mmap") return CachePolicy{.kind = CacheKind::kMapped};
  uint64_t mib = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, mib);
  if (error != std::errc{} || last != end || mib == 0 || mib > kMaxBudgetMib) {
    return fail("expected full, mmap or a number of MiB from 1 on, found '{}'", text);
  }
  return CachePolicy{.kind = CacheKind::kBudget, .budget_mib = mib};
}

SlotRange SlotPlan::slot(uint32_t size_class, uint32_t index) const {
  const SlotClass& c = classes[size_class];
  return {.offset = c.offset + index * c.slot_bytes, .bytes = c.slot_bytes};
}

uint32_t SlotPlan::n_slots() const {
  uint32_t n = 0;
  for (const SlotClass& c : classes) n += c.n_slots;
  return n;
}

Result<SlotPlan> plan_slots(std::span<const LayerSize> layers, CachePolicy policy,
                            uint32_t max_in_use) {
  if (policy.kind == CacheKind::kMapped) {
    return SlotPlan{.kind = CacheKind::kMapped,
                    .classes = {},
                    .class_of_layer = std::vector<uint32_t>(layers.size()),
                    .bytes = 0};
  }
  Result<SlotPlan> plan = classify(layers);
  if (!plan) return plan;
  plan->kind = policy.kind;
  if (policy.kind == CacheKind::kFull) {
    for (SlotClass& c : plan->classes) c.n_slots = c.n_experts;
    set_offsets(*plan);
    return plan;
  }
  if (policy.budget_mib > kMaxBudgetMib) return fail("experts: a budget beyond 2^64 bytes");
  for (SlotClass& c : plan->classes) c.n_slots = least_slots(c, max_in_use);
  set_offsets(*plan);
  const uint64_t budget = policy.budget_mib * kMib;
  if (plan->bytes > budget) {
    return fail(
        "experts: a cache of {} MiB does not hold the {} experts of a layer that are in use at "
        "the same time; the smallest that does has {} MiB",
        policy.budget_mib, max_in_use, div_up(plan->bytes, kMib));
  }
  uint64_t left = budget - plan->bytes;
  // Ends at the first slot that does not fit, although a smaller one might: what is granted is then
  // a prefix of one sequence, whatever the budget.
  for (SlotClass* c = neediest(plan->classes); c != nullptr && c->slot_bytes <= left;
       c = neediest(plan->classes)) {
    ++c->n_slots;
    left -= c->slot_bytes;
  }
  set_offsets(*plan);
  return plan;
}

}  // namespace godwit::experts
