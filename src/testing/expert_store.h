// A store over an ExpertModel with memory of its own, which compares every expert that it delivers
// with the file's bytes. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "experts/store.h"
#include "testing/expert_model.h"

namespace godwit::testing {

// A plan with this many slots for each class, which a budget in MiB is too coarse for.
inline experts::SlotPlan plan_with(const ExpertModel& model, uint32_t n_slots) {
  experts::SlotPlan plan = *experts::plan_slots(model.sizes(), {experts::CacheKind::kFull, 0}, 1);
  plan.kind = experts::CacheKind::kBudget;
  plan.bytes = 0;
  for (experts::SlotClass& c : plan.classes) {
    c.n_slots = std::min(c.n_experts, n_slots);
    c.offset = plan.bytes;
    plan.bytes += c.slot_bytes * c.n_slots;
  }
  return plan;
}

struct TestStore {
  TestStore(const ExpertModel& model_in, const experts::SlotPlan& plan,
            experts::StoreOptions options)
      : model(model_in), memory(plan) {
    auto made =
        experts::ExpertStore::create(model.source(), plan, memory.packer(), std::move(options));
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    store = std::make_unique<experts::ExpertStore>(*std::move(made));
  }

  // Takes all experts of the lease and compares each; "" or what is wrong.
  std::string drain(experts::Lease& lease, uint32_t layer,
                    std::span<const uint32_t> experts) const {
    std::set<size_t> seen;
    while (true) {
      const auto ready = lease.next();
      if (!ready) return ready.error().message;
      if (!*ready) break;
      seen.insert((*ready)->index);
      if (!holds(**ready, layer, experts)) return "a slot holds something else";
    }
    return seen.size() == experts.size() ? "" : "not every expert came";
  }
  std::string use(uint32_t layer, std::span<const uint32_t> experts) const {
    auto lease = store->acquire(layer, experts);
    if (!lease) return lease.error().message;
    return drain(*lease, layer, experts);
  }
  std::string use(uint32_t layer, std::initializer_list<uint32_t> experts) const {
    return use(layer, std::span(experts.begin(), experts.size()));
  }
  Result<experts::Lease> acquire(uint32_t layer, std::initializer_list<uint32_t> experts) const {
    return store->acquire(layer, std::span(experts.begin(), experts.size()));
  }
  void hint(uint32_t layer, std::initializer_list<uint32_t> experts) const {
    store->hint(layer, std::span(experts.begin(), experts.size()));
  }
  [[nodiscard]] bool holds(const experts::Resident& resident, uint32_t layer,
                           std::span<const uint32_t> experts) const {
    return memory.holds(resident, model.source().mapped({layer, experts[resident.index]}));
  }
  [[nodiscard]] experts::LayerStatistics total() const { return store->statistics().total(); }

  const ExpertModel& model;
  ExpertMemory memory;
  std::unique_ptr<experts::ExpertStore> store;
};

}  // namespace godwit::testing
