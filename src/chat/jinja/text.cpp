#include "chat/jinja/text.h"

#include <algorithm>

#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

bool all_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Text::Text(std::string_view plain)
    : Text(MarkedText{.text = std::string(plain), .user_ranges = {}}) {}

Text::Text(MarkedText marked) : Text(std::move(marked), Charge()) {}

Text::Text(MarkedText marked, Charge charge) : ascii_(all_ascii(marked.text)) {
  if (!marked.text.empty()) {
    data_ = std::make_shared<const Data>(std::move(marked), std::move(charge));
  }
}

Text Text::from_user(std::string_view bytes) {
  return Text(MarkedText{.text = std::string(bytes), .user_ranges = {{0, bytes.size()}}});
}

Text Text::as_markup(bool markup) const {
  Text out = *this;
  out.markup_ = markup;
  return out;
}

const std::vector<TextRange>& Text::marks() const {
  static const std::vector<TextRange> none;
  return data_ ? data_->marked.user_ranges : none;
}

std::size_t Text::length() const { return index_of(size()); }

std::size_t Text::offset_of(std::size_t code_point) const {
  if (ascii_) {
    return std::min(code_point, size());
  }
  const std::string_view text = view();
  std::size_t offset = 0;
  while (code_point > 0 && offset < text.size()) {
    offset += static_cast<std::size_t>(decode_utf8(text.substr(offset)).length);
    --code_point;
  }
  return offset;
}

std::size_t Text::index_of(std::size_t offset) const {
  if (ascii_) {
    return offset;
  }
  const std::string_view text = view();
  std::size_t count = 0;
  for (std::size_t at = 0; at < offset; ++count) {
    at += static_cast<std::size_t>(decode_utf8(text.substr(at)).length);
  }
  return count;
}

void TextBuilder::mark(std::size_t begin, std::size_t end) {
  if (begin == end) {
    return;
  }
  if (!out_.user_ranges.empty() && out_.user_ranges.back().end == begin) {
    out_.user_ranges.back().end = end;
    return;
  }
  charge_.add(sizeof(TextRange));
  out_.user_ranges.push_back({begin, end});
}

void TextBuilder::append(const Text& text, std::size_t begin, std::size_t end) {
  const std::size_t at = out_.text.size();
  append_plain(text.view().substr(begin, end - begin));
  const std::vector<TextRange>& marks = text.marks();
  auto range = std::partition_point(marks.begin(), marks.end(),
                                    [&](const TextRange& r) { return r.end <= begin; });
  for (; range != marks.end() && range->begin < end; ++range) {
    mark(at + std::max(range->begin, begin) - begin, at + std::min(range->end, end) - begin);
  }
}

void TextBuilder::append_plain(std::string_view bytes) {
  charge_.add(bytes.size());
  out_.text.append(bytes);
}

void TextBuilder::append_user(std::string_view bytes) {
  append_plain(bytes);
  mark(out_.text.size() - bytes.size(), out_.text.size());
}

void CodePoints::load() {
  if (done()) {
    return;
  }
  const Decoded decoded = decode_utf8(view_.substr(begin_));
  value_ = decoded.value;
  end_ = begin_ + static_cast<std::size_t>(decoded.length);
  const std::vector<TextRange>& marks = text_.marks();
  while (range_ < marks.size() && marks[range_].end <= begin_) {
    ++range_;
  }
  user_ = range_ < marks.size() && marks[range_].begin < end_;
}

void CodePoints::next() {
  begin_ = end_;
  load();
}

Text substring(Budget& budget, const Text& text, std::size_t begin, std::size_t end) {
  if (begin == 0 && end == text.size()) {
    return text;
  }
  TextBuilder out(budget);
  if (begin < end) {
    out.append(text, begin, end);
  }
  return out.finish().as_markup(text.is_markup());
}

}  // namespace godwit::chat::jinja
