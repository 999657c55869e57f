#include "chat/jinja/text_search.h"

#include <gtest/gtest.h>

#include <string>

namespace godwit::chat::jinja {
namespace {

// All texts of up to `longest` letters out of a and b.
std::vector<std::string> texts_up_to(std::size_t longest) {
  std::vector<std::string> out = {""};
  for (std::size_t i = 0; i < out.size() && out[i].size() < longest; ++i) {
    out.push_back(out[i] + "a");
    out.push_back(out[i] + "b");
  }
  return out;
}

std::vector<std::size_t> found(std::string_view text, std::string_view needle, SearchFrom from) {
  Budget budget{RenderLimits{}};
  TextSearch search(budget, text, needle, from);
  std::vector<std::size_t> places;
  for (std::size_t at = search.next(); at != TextSearch::kNone; at = search.next()) {
    places.push_back(at);
  }
  return places;
}

std::vector<std::size_t> expected(std::string_view text, std::string_view needle, SearchFrom from) {
  std::vector<std::size_t> places;
  if (from == SearchFrom::kLeft) {
    for (std::size_t at = text.find(needle); at != std::string_view::npos;
         at = text.find(needle, at + needle.size())) {
      places.push_back(at);
    }
    return places;
  }
  for (std::size_t end = text.size(); text.substr(0, end).rfind(needle) != std::string_view::npos;
       end = places.back()) {
    places.push_back(text.substr(0, end).rfind(needle));
  }
  return places;
}

// Every needle with every border it can have.
TEST(TextSearch, FindsWhatTheStandardLibraryFinds) {
  for (const std::string& needle : texts_up_to(6)) {
    if (needle.empty()) continue;
    for (const std::string& text : texts_up_to(9)) {
      for (const SearchFrom from : {SearchFrom::kLeft, SearchFrom::kRight}) {
        EXPECT_EQ(found(text, needle, from), expected(text, needle, from))
            << "'" << needle << "' in '" << text << "'";
      }
    }
  }
}

TEST(TextSearch, AnEmptyNeedleIsWhereTheSearchBegins) {
  EXPECT_EQ(found("abc", "", SearchFrom::kLeft), std::vector<std::size_t>{0});
  EXPECT_EQ(found("abc", "", SearchFrom::kRight), std::vector<std::size_t>{3});
  EXPECT_EQ(found("", "", SearchFrom::kLeft), std::vector<std::size_t>{0});
  EXPECT_EQ(found("", "a", SearchFrom::kLeft), std::vector<std::size_t>{});
}

// A search that looks at each place anew makes 2.5e11 comparisons here and never ends.
TEST(TextSearch, LongNeedlesThatNearlyMatchTakeLinearWork) {
  const std::string text(1'000'000, 'a');
  for (const SearchFrom from : {SearchFrom::kLeft, SearchFrom::kRight}) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      EXPECT_TRUE(found(text, std::string(500'000, 'a') + "b", from).empty());
      EXPECT_TRUE(found(text, "b" + std::string(500'000, 'a'), from).empty());
    }
  }
}

TEST(TextSearch, PaysByLength) {
  const std::string text(1'000'000, 'a');
  Budget budget{RenderLimits{.max_steps = 10'000}};
  EXPECT_EQ(find_text(budget, std::string_view(text).substr(0, 1000), "b", SearchFrom::kLeft),
            TextSearch::kNone);
  EXPECT_ANY_THROW(find_text(budget, text, "b", SearchFrom::kLeft));
}

}  // namespace
}  // namespace godwit::chat::jinja
