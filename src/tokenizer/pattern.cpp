#include "tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace godwit::tokenizer {
namespace {

// Unicode's White_Space property, as the inside of a class.
constexpr std::string_view kWhiteSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

// A run of white space costs one backtrack for each of its characters, so the limit has to grow
// with the text; below this floor nothing realistic is refused.
constexpr size_t kLeastMatchLimit = 10'000'000;
constexpr size_t kMostMatchLimit = UINT32_MAX;
constexpr uint32_t kHeapLimitKib = 64 * 1024;

struct Release {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
using Code = std::unique_ptr<pcre2_code, Release>;
using MatchData = std::unique_ptr<pcre2_match_data, Release>;
using MatchContext = std::unique_ptr<pcre2_match_context, Release>;

PCRE2_SPTR units(std::string_view text) {
  // PCRE2 reads bytes as unsigned char; the two have the same representation.
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// One search after another through the same piece of text.
class Search {
 public:
  Search(const pcre2_code* code, size_t text_bytes)
      : code_(code),
        data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    check(data_ != nullptr && context_ != nullptr, "out of memory for a pattern search");
    const size_t limit = std::clamp(text_bytes * 4, kLeastMatchLimit, kMostMatchLimit);
    pcre2_set_match_limit(context_.get(), static_cast<uint32_t>(limit));
    pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
  }

  // The first match at or after `from`; {size, size} if there is none.
  TextRange next(std::string_view piece, size_t from) {
    // PCRE2 proves the UTF-8 once for each piece; doing so at every match would be quadratic.
    const uint32_t options = from == 0 ? 0u : PCRE2_NO_UTF_CHECK;
    int found = match(piece, from, options);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(piece, from, options | PCRE2_NO_JIT);
    if (found < 0) return {piece.size(), piece.size()};
    const size_t* ends = pcre2_get_ovector_pointer(data_.get());
    return {ends[0], ends[1]};
  }

 private:
  int match(std::string_view piece, size_t from, uint32_t options) {
    return pcre2_match(code_, units(piece), piece.size(), from, options, data_.get(),
                       context_.get());
  }

  const pcre2_code* code_;
  MatchData data_;
  MatchContext context_;
};

}  // namespace

struct Pattern::Impl {
  Code code;
};

Pattern::Pattern(std::string_view regex) : impl_(std::make_unique<Impl>()) {
  const std::string expanded = expand_white_space(regex);
  int error = 0;
  size_t offset = 0;
  impl_->code.reset(pcre2_compile(units(expanded), expanded.size(), PCRE2_UTF | PCRE2_UCP, &error,
                                  &offset, nullptr));
  check(impl_->code != nullptr, "a pre-tokenizer's pattern does not compile");
  // Where code may not be generated at run time PCRE2 interprets: slower, the same matches.
  (void)pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE);
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

std::vector<TextRange> Pattern::cut(std::string_view text,
                                    std::span<const TextRange> pieces) const {
  std::vector<TextRange> out;
  out.reserve(pieces.size() + text.size() / 4);
  Search search(impl_->code.get(), text.size());
  for (const TextRange& piece : pieces) {
    const std::string_view inside = text.substr(piece.begin, piece.end - piece.begin);
    size_t done = 0;
    while (done < inside.size()) {
      const TextRange match = search.next(inside, done);
      if (match.begin > done) out.push_back({piece.begin + done, piece.begin + match.begin});
      // No pattern here can match nothing; were one to, the rest would be one piece, not a loop.
      const size_t end = match.end > match.begin ? match.end : inside.size();
      if (end > match.begin) out.push_back({piece.begin + match.begin, piece.begin + end});
      done = end;
    }
  }
  return out;
}

std::string expand_white_space(std::string_view regex) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\' && i + 1 < regex.size()) {
      ++i;
      if (regex[i] == 's') {
        out += in_class ? std::string(kWhiteSpace) : "[" + std::string(kWhiteSpace) + "]";
      } else if (regex[i] == 'S') {
        check(!in_class, "\\S inside a class of a pre-tokenizer's pattern");
        out += "[^" + std::string(kWhiteSpace) + "]";
      } else {
        out += '\\';
        out += regex[i];
      }
      continue;
    }
    if (regex[i] == '[') in_class = true;
    if (regex[i] == ']') in_class = false;
    out += regex[i];
  }
  return out;
}

}  // namespace godwit::tokenizer
