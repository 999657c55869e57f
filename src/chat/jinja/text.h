// A string of a template: immutable shared bytes, and which of them came from outside. The marks
// follow the bytes through every operation; that is what keeps a user from writing special
// tokens. Python counts code points, this type bytes: the offsets of the functions below say which.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "chat/jinja/budget.h"

namespace godwit::chat::jinja {

class Text {
 public:
  Text() = default;
  // Unmarked: the template's own words.
  explicit Text(std::string_view plain);
  explicit Text(MarkedText marked);
  Text(MarkedText marked, Charge charge);
  // Every byte marked.
  static Text from_user(std::string_view bytes);

  std::string_view view() const { return data_ ? std::string_view(data_->marked.text) : ""; }
  std::size_t size() const { return view().size(); }
  bool empty() const { return view().empty(); }
  bool has_marks() const { return data_ && !data_->marked.user_ranges.empty(); }
  const std::vector<TextRange>& marks() const;
  // One byte is one code point.
  bool is_ascii() const { return ascii_; }
  // Python's Markup, which the filters safe and escape make: text added to it is escaped.
  bool is_markup() const { return markup_; }
  Text as_markup(bool markup) const;

  // Call before one of these three, which walk a text that is not ASCII.
  void pay_to_count(Budget& budget) const { budget.step(1 + (is_ascii() ? 0 : size() / 8)); }
  // Number of code points.
  std::size_t length() const;
  // Byte offset of a code point; length() gives size().
  std::size_t offset_of(std::size_t code_point) const;
  // Number of code points before a byte offset.
  std::size_t index_of(std::size_t offset) const;

 private:
  struct Data {
    MarkedText marked;
    Charge charge;
  };
  std::shared_ptr<const Data> data_;
  bool ascii_ = true;
  bool markup_ = false;
};

// Puts a text together from pieces, paying the budget for every byte before it is copied.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget), charge_(budget) {}

  void append(const Text& text) { append(text, 0, text.size()); }
  // Bytes [begin, end) with their marks.
  void append(const Text& text, std::size_t begin, std::size_t end);
  void append_plain(std::string_view bytes);
  void append_user(std::string_view bytes);
  void append_as(std::string_view bytes, bool user) {
    user ? append_user(bytes) : append_plain(bytes);
  }

  std::size_t size() const { return out_.text.size(); }
  Text finish() {
    // A million one-letter words are a million small allocations.
    charge_.add(out_.text.empty() ? 0 : kTextOverheadBytes);
    return Text(std::move(out_), std::move(charge_));
  }
  // Each byte put through a function first, where all are ASCII.
  Text finish_mapped(char (*map)(char)) {
    budget_.step(size() / 32);
    for (char& c : out_.text) c = map(c);
    return finish();
  }
  MarkedText finish_marked() { return std::move(out_); }

 private:
  // What a text takes beyond its bytes.
  static constexpr std::size_t kTextOverheadBytes = 96;

  void mark(std::size_t begin, std::size_t end);

  Budget& budget_;
  Charge charge_;
  MarkedText out_;
};

// Walks a text code point by code point. Bytes that are not UTF-8 count as one each.
class CodePoints {
 public:
  // Pays for the whole walk.
  CodePoints(Budget& budget, const Text& text) : text_(text), view_(text.view()) {
    budget.step(1 + text.size() / (text.is_ascii() ? 4 : 2));
  }

  bool done() const { return begin_ >= view_.size(); }
  void next();
  char32_t value() const { return value_; }
  std::string_view bytes() const { return view_.substr(begin_, end_ - begin_); }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  bool user() const { return user_; }
  // Call before the first value(): loads the first code point.
  CodePoints& start() {
    load();
    return *this;
  }

 private:
  void load();

  const Text& text_;
  std::string_view view_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t range_ = 0;  // first marked range that ends after begin_
  char32_t value_ = 0;
  bool user_ = false;
};

Text substring(Budget& budget, const Text& text, std::size_t begin, std::size_t end);

}  // namespace godwit::chat::jinja
