// Finds entries by name: a sorted permutation of positions. Sorting keeps the cost n log n whatever
// names a hostile file brings, which a hash table would not, and shows duplicates side by side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace godwit::gguf {

class NameIndex {
 public:
  NameIndex() = default;
  // name_of(i) is the name of entry i < n. The same function must be given to find().
  template <class NameOf>
  NameIndex(size_t n, const NameOf& name_of) : order_(n) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    // Equal names in the order of their entries: the first one is the one found.
    std::ranges::sort(order_, [&](size_t a, size_t b) {
      const int order = name_of(a).compare(name_of(b));
      return order != 0 ? order < 0 : a < b;
    });
  }

  // The position of the first entry called `name`.
  template <class NameOf>
  [[nodiscard]] std::optional<size_t> find(std::string_view name, const NameOf& name_of) const {
    const auto it = std::ranges::lower_bound(order_, name, {}, name_of);
    if (it == order_.end() || name_of(*it) != name) return std::nullopt;
    return *it;
  }

  // The position of an entry whose name an earlier entry has too.
  template <class NameOf>
  [[nodiscard]] std::optional<size_t> find_duplicate(const NameOf& name_of) const {
    const auto same = [&](size_t a, size_t b) { return name_of(a) == name_of(b); };
    const auto it = std::ranges::adjacent_find(order_, same);
    if (it == order_.end()) return std::nullopt;
    return *(it + 1);
  }

 private:
  std::vector<size_t> order_;
};

}  // namespace godwit::gguf
