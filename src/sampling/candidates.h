// The tokens still in the running while a chain works, with their logits. Keeps track of how much
// of the list is already in order, so that no sampler sorts more of a vocabulary than it looks at.
// Owned by one Sampler and refilled for each position.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/types.h"

namespace godwit::sampling {

struct Candidate {
  int32_t id = 0;
  float logit = 0.0f;  // never NaN
};

// The one order of candidates: higher logits first, then lower ids. Total, so that equal logits
// cannot make a result depend on the sorting algorithm.
[[nodiscard]] inline bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// exp(logit - max), the numerator of a softmax. The maximum counts 1 even where it is infinite.
[[nodiscard]] inline double softmax_weight(float logit, float max) {
  return logit == max ? 1.0 : static_cast<double>(std::exp(logit - max));
}

// Puts items[sorted, wanted) in their final places, given that [0, sorted) is in place already.
// A heap over all items is quickest for few, a selection for many.
template <class Item, class Before>
void extend_sorted(std::span<Item> items, size_t& sorted, size_t wanted, Before before) {
  constexpr size_t kHeapAtMost = 256;
  wanted = std::min(wanted, items.size());
  if (wanted <= sorted) return;
  const auto first = items.begin() + static_cast<ptrdiff_t>(sorted);
  const auto middle = items.begin() + static_cast<ptrdiff_t>(wanted);
  if (wanted - sorted <= kHeapAtMost) {
    std::partial_sort(first, middle, items.end(), before);
  } else {
    if (middle != items.end()) std::nth_element(first, middle, items.end(), before);
    std::sort(first, middle, before);
  }
  sorted = wanted;
}

// The next size to sort to when `have` were not enough: few at first, then quickly all.
[[nodiscard]] inline size_t more_than(size_t have) { return have < 256 ? 256 : have * 8; }

class Candidates {
 public:
  // Every token of the vocabulary, NaN as minus infinity, and right after that the only moment at
  // which change_by_id() may be called: change(std::span<Candidate>), indexed by id.
  void fill(std::span<const float> logits);
  template <class Change>
  void change_by_id(Change change) {
    change(std::span(items_));
  }

  [[nodiscard]] size_t size() const { return items_.size(); }
  // Valid for places below sorted() or where the order does not matter.
  [[nodiscard]] const Candidate& operator[](size_t i) const { return items_[i]; }
  [[nodiscard]] std::span<const Candidate> items() const { return items_; }
  [[nodiscard]] size_t sorted() const { return sorted_; }
  [[nodiscard]] float max_logit() const;

  // Calls change(Candidate&) for those of `ids` that are still in the running; `ids` are distinct
  // and `marks[id]` is true for exactly these.
  template <class Change>
  void change(std::span<const int32_t> ids, const std::vector<bool>& marks, Change change);
  // Calls change(Candidate&) for all; for changes that keep the order.
  template <class Change>
  void change_all(Change change);

  // Makes [0, n) the n best, in order.
  void sort_top(size_t n);
  // Keeps the n best, in order.
  void keep_top(size_t n);
  // Drops the n best, which are in order.
  void drop_top(size_t n);
  // Keeps those with at least this logit, without sorting.
  void keep_at_least(float logit);
  void replace(std::span<const Candidate> kept);
  void keep_only(size_t i);

  // Softmax numerators in the list's order, and their sum.
  struct Weights {
    std::span<const float> values;
    double sum = 0.0;
  };
  [[nodiscard]] Weights weights();

 private:
  std::vector<Candidate> items_;
  std::vector<float> weights_;
  size_t sorted_ = 0;   // items_[0, sorted_) are the best, in order
  bool by_id_ = false;  // items_[i].id == i
};

template <class Change>
void Candidates::change(std::span<const int32_t> ids, const std::vector<bool>& marks,
                        Change change) {
  if (by_id_) {
    for (const int32_t id : ids) change(items_[static_cast<size_t>(id)]);
  } else {
    for (Candidate& item : items_) {
      if (marks[static_cast<size_t>(item.id)]) change(item);
    }
  }
  sorted_ = 0;
}

template <class Change>
void Candidates::change_all(Change change) {
  for (Candidate& item : items_) change(item);
}

}  // namespace godwit::sampling
