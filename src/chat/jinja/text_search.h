// Where a text occurs in another, one place after the next, as str.find, split, replace and `in`
// need it. The search is linear whatever the two texts are (Knuth, Morris and Pratt 1977):
// string_view::find and, for needles below 256 bytes, memmem take the product of the lengths, which
// templates and messages from anywhere could choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "chat/jinja/budget.h"

namespace godwit::chat::jinja {

enum class SearchFrom { kLeft, kRight };

class TextSearch {
 public:
  static constexpr std::size_t kNone = std::string_view::npos;

  // Pays for finding all places and for the memory. Both texts live longer than this.
  TextSearch(Budget& budget, std::string_view text, std::string_view needle, SearchFrom from);

  // Offset of the next place that overlaps none before; kNone: there is no further one. An empty
  // needle is at the end where the search begins, and nowhere else.
  std::size_t next();

 private:
  std::string_view text_;
  std::string_view needle_;
  SearchFrom from_;
  std::size_t passed_ = 0;  // bytes of the text behind the search
  bool done_;
  Charge memory_;
  // Of each beginning of the needle (seen from where the search begins), how many of its last
  // bytes begin the needle too: what is still matched when the byte after it does not match.
  std::vector<std::uint32_t> borders_;
};

// The first place only.
std::size_t find_text(Budget& budget, std::string_view text, std::string_view needle,
                      SearchFrom from);

}  // namespace godwit::chat::jinja
