// The sort of filters: stable, as Python's. A merge sort of its own: whatever the comparison says
// (values from templates need not have an order), and where it throws, nothing is read out of
// bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace godwit::chat::jinja {

template <class T, class Before>
void merge_sort(std::vector<T>& items, const Before& before) {
  std::vector<T> merged(items.size());
  for (std::size_t width = 1; width < items.size(); width *= 2) {
    for (std::size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const auto at = [&](std::size_t offset) {
        const std::size_t end = std::min(begin + offset, items.size());
        return std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(end));
      };
      std::merge(at(0), at(width), at(width), at(2 * width),
                 merged.begin() + static_cast<std::ptrdiff_t>(begin), before);
    }
    std::swap(items, merged);
  }
}

}  // namespace godwit::chat::jinja
