#include "chat/jinja/text_search.h"

#include <algorithm>

namespace godwit::chat::jinja {

namespace {

// A byte takes about a nanosecond, a step of the evaluator some fifty.
constexpr std::size_t kBytesPerStep = 32;

// Needle and text are read through iterators, so that one search serves both directions.
template <class Iterator>
std::vector<std::uint32_t> borders_of(Iterator needle, std::size_t size) {
  std::vector<std::uint32_t> borders(size);
  std::uint32_t matched = 0;
  for (std::size_t i = 1; i < size; ++i) {
    const char c = needle[static_cast<std::ptrdiff_t>(i)];
    while (matched > 0 && c != needle[matched]) matched = borders[matched - 1];
    matched += c == needle[matched] ? 1U : 0U;
    borders[i] = matched;
  }
  return borders;
}

// Just behind the first place of the needle, or `end`; `found` says which.
template <class Iterator>
Iterator find_end(Iterator at, Iterator end, Iterator needle,
                  const std::vector<std::uint32_t>& borders, bool& found) {
  std::uint32_t matched = 0;
  for (found = borders.empty(); !found; ++at) {
    // Where nothing is matched, as in most of most texts, the next possible beginning.
    if (matched == 0) at = std::find(at, end, *needle);
    if (at == end) return end;
    while (matched > 0 && *at != needle[matched]) matched = borders[matched - 1];
    matched += *at == needle[matched] ? 1U : 0U;
    found = matched == borders.size();
  }
  return at;
}

}  // namespace

TextSearch::TextSearch(Budget& budget, std::string_view text, std::string_view needle,
                       SearchFrom from)
    : text_(text),
      needle_(needle),
      from_(from),
      done_(needle.size() > text.size()),
      memory_(budget) {
  budget.step();
  if (done_) return;
  budget.step((text.size() + needle.size()) / kBytesPerStep);
  memory_.add(needle.size() * sizeof(borders_[0]));
  borders_ = from == SearchFrom::kLeft ? borders_of(needle.begin(), needle.size())
                                       : borders_of(needle.rbegin(), needle.size());
}

std::size_t TextSearch::next() {
  if (done_) return kNone;
  bool found = false;
  const auto passed = static_cast<std::ptrdiff_t>(passed_);
  if (from_ == SearchFrom::kLeft) {
    const auto end =
        find_end(text_.begin() + passed, text_.end(), needle_.begin(), borders_, found);
    passed_ = static_cast<std::size_t>(end - text_.begin());
  } else {
    const auto end =
        find_end(text_.rbegin() + passed, text_.rend(), needle_.rbegin(), borders_, found);
    passed_ = static_cast<std::size_t>(end - text_.rbegin());
  }
  done_ = !found || needle_.empty();
  if (!found) return kNone;
  return from_ == SearchFrom::kLeft ? passed_ - needle_.size() : text_.size() - passed_;
}

std::size_t find_text(Budget& budget, std::string_view text, std::string_view needle,
                      SearchFrom from) {
  return TextSearch(budget, text, needle, from).next();
}

}  // namespace godwit::chat::jinja
