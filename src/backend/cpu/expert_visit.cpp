#include "backend/cpu/expert_visit.h"

#include <algorithm>
#include <utility>

namespace godwit::cpu {

void ExpertVisit::begin(uint32_t layer, std::span<const uint32_t> experts, uint32_t then) {
  end();
  layer_ = layer;
  chosen_.assign(experts.begin(), experts.end());
  status_ = {};
  const size_t capacity = store_.capacity(layer);
  const bool fits = chosen_.size() <= capacity;
  group_size_ = fits ? std::max<size_t>(chosen_.size(), 1) : std::max<size_t>(capacity / 2, 1);
  max_groups_ = fits || capacity < 2 ? 1 : 2;
  if (!fits) store_.sort_residents_first(layer, chosen_);
  open_groups();
  // Read while this layer is computed; it needs no guess.
  if (status_ && then != layer && experts.size() <= store_.capacity(then)) {
    store_.hint(then, experts);
  }
}

void ExpertVisit::open_groups() {
  while (groups_.size() < max_groups_ && n_opened_ < chosen_.size()) {
    const auto first = chosen_.begin() + static_cast<std::ptrdiff_t>(n_opened_);
    const size_t n = std::min(group_size_, chosen_.size() - n_opened_);
    std::vector<uint32_t> ids(first, first + static_cast<std::ptrdiff_t>(n));
    Result<experts::Lease> lease = store_.acquire(layer_, ids);
    if (!lease) {
      fail_with(lease.error());
      return;
    }
    groups_.push_back({.experts = std::move(ids), .lease = *std::move(lease)});
    n_opened_ += n;
  }
}

void ExpertVisit::advance() {
  batch_.clear();
  waiting_ = false;
  if (!status_) return;
  while (!groups_.empty() && groups_.front().lease.is_drained()) groups_.pop_front();
  open_groups();
  if (!status_ || groups_.empty()) {
    last_ = true;
    return;
  }
  if (groups_.front().lease.n_ready() > 0) {
    take_ready(groups_.front());
    return;
  }
  last_ = false;
  waiting_ = true;
  epoch_ = arrived_.load(std::memory_order_relaxed);
}

void ExpertVisit::wait(size_t thread) {
  if (thread != 0) {
    arrived_.wait(epoch_, std::memory_order_acquire);
    return;
  }
  take_ready(groups_.front());
  arrived_.store(epoch_ + 1, std::memory_order_release);
  arrived_.notify_all();
}

// What can be had without waiting, or after a wait the first that comes.
void ExpertVisit::take_ready(Group& group) {
  do {
    const auto ready = group.lease.next();
    if (!ready) {
      fail_with(ready.error());
      return;
    }
    if (!*ready) break;
    const experts::Resident& resident = **ready;
    batch_.push_back({.id = group.experts[resident.index],
                      .slot = resident.slot.bytes == 0 ? nullptr : memory_ + resident.slot.offset,
                      .mapped = resident.mapped});
  } while (group.lease.n_ready() > 0);
  last_ = groups_.size() == 1 && n_opened_ == chosen_.size() && group.lease.is_drained();
}

void ExpertVisit::fail_with(const Error& error) {
  end();
  status_ = fail(error);
}

void ExpertVisit::end() {
  batch_.clear();
  groups_.clear();
  chosen_.clear();
  n_opened_ = 0;
  last_ = true;
}

}  // namespace godwit::cpu
