#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/random.h"
#include "testing/source_dir.h"
#include "tokenizer/pattern.h"
#include "tokenizer/pretokenizer_table.h"

namespace godwit::tokenizer {
namespace {

nlohmann::json fixture(const std::string& name) {
  std::ifstream in(testing::source_dir() / "tests/fixtures/tokenizer" / name);
  return nlohmann::json::parse(in);
}

std::vector<std::string> words(std::string_view name, std::string_view text) {
  const Result<PreTokenizer> pretokenizer = PreTokenizer::make(name);
  EXPECT_TRUE(pretokenizer.has_value());
  std::vector<std::string> out;
  for (const TextRange& r : pretokenizer->split(text)) {
    out.emplace_back(text.substr(r.begin, r.end - r.begin));
  }
  return out;
}

using Words = std::vector<std::string>;

std::vector<std::string> names_with_fixtures() {
  std::vector<std::string> names;
  const nlohmann::json all = fixture("words.json");
  for (const auto& [name, lengths] : all.items()) names.push_back(name);
  return names;
}

// As GoogleTest wants the names of tests.
std::string without_signs(std::string name) {
  std::erase_if(name, [](char c) { return c == '-' || c == '_' || c == '.'; });
  return name;
}

class PreTokenizerTest : public ::testing::TestWithParam<std::string> {};

// The witness is the `tokenizers` package with the patterns that the models publish
// (tools/make_tokenizer_fixture.py).
TEST_P(PreTokenizerTest, CutsAsThePublishedPatternDoes) {
  const nlohmann::json strings = fixture("corpus.json");
  const nlohmann::json all = fixture("words.json");
  const nlohmann::json& first = all.at("gpt-2");
  const nlohmann::json& own = all.at(GetParam());
  ASSERT_GE(strings.size(), 300u);
  ASSERT_EQ(strings.size(), first.size());
  const Result<PreTokenizer> pretokenizer = PreTokenizer::make(GetParam());
  ASSERT_TRUE(pretokenizer.has_value());
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto text = strings[i].get<std::string>();
    std::vector<size_t> lengths;
    for (const TextRange& word : pretokenizer->split(text)) {
      lengths.push_back(word.end - word.begin);
    }
    // All but the first list hold only what differs from the first, by index.
    const std::string index = std::to_string(i);
    const bool differs = own.is_object() && own.contains(index);
    const nlohmann::json& expected = differs ? own.at(index) : first[i];
    EXPECT_EQ(lengths, expected.get<std::vector<size_t>>()) << strings[i].dump(-1, ' ', true);
  }
}

TEST_P(PreTokenizerTest, PutsEveryByteOfAnyTextInExactlyOneWord) {
  const Result<PreTokenizer> pretokenizer = PreTokenizer::make(GetParam());
  ASSERT_TRUE(pretokenizer.has_value());
  static constexpr std::string_view kPool =
      "a1 \n\r\t.'sA9\x80\xC3\xA9\xE4\xB8\xAD\xF0\xFF\xED\xA0";
  RandomStream random(11);
  for (int round = 0; round < 5'000; ++round) {
    std::string text;
    for (uint64_t n = random.below(30); n > 0; --n) text += kPool[random.below(kPool.size())];
    size_t done = 0;
    for (const TextRange& word : pretokenizer->split(text)) {
      ASSERT_EQ(word.begin, done);
      ASSERT_GT(word.end, word.begin);
      done = word.end;
    }
    ASSERT_EQ(done, text.size());
  }
}

// Long runs are where backtracking and recursion hurt: each must come back, whole.
TEST_P(PreTokenizerTest, CopesWithVeryLongRuns) {
  const Result<PreTokenizer> pretokenizer = PreTokenizer::make(GetParam());
  ASSERT_TRUE(pretokenizer.has_value());
  for (const std::string_view unit : {"a", " ", "\n", "\t", "1", ".", "'", " \n", "\xC3\xA9",
                                      "\xC2\xA0", "\xE3\x80\x80", "\xFF", "a ", "'s"}) {
    std::string text;
    while (text.size() < 40'000) text += unit;
    for (const std::string_view tail : {"", "x", " x", "\n", "\n.", "\xFF"}) {
      const std::string whole = text + std::string(tail);
      const std::vector<TextRange> ranges = pretokenizer->split(whole);
      ASSERT_FALSE(ranges.empty());
      EXPECT_EQ(ranges.back().end, whole.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Names, PreTokenizerTest, ::testing::ValuesIn(names_with_fixtures()),
                         [](const auto& name) { return without_signs(name.param); });

TEST(PreTokenizer, HasAFixtureForEachRow) {
  const std::vector<std::string> names = names_with_fixtures();
  for (const PreTokenizerRow& row : pretokenizer_rows()) {
    const bool has_fixture = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const PreTokenizerRow* named = find_pretokenizer(name);
      return named != nullptr && named->patterns.data() == row.patterns.data();
    });
    EXPECT_TRUE(has_fixture) << row.names;
  }
}

TEST(PreTokenizer, FindsEveryNameOfEveryRowAndNoPartOfOne) {
  for (const PreTokenizerRow& row : pretokenizer_rows()) {
    std::istringstream names{std::string(row.names)};
    for (std::string name; names >> name;) EXPECT_EQ(find_pretokenizer(name), &row) << name;
  }
  for (const std::string_view name : {"", " ", "gpt", "gpt-2 phi-2", "qwen", "2"}) {
    EXPECT_EQ(find_pretokenizer(name), nullptr) << name;
  }
}

TEST(PreTokenizer, KeepsALongWordWhole) {
  EXPECT_EQ(words("gpt-2", std::string(50'000, 'a')).size(), 1u);
  EXPECT_EQ(words("qwen2", std::string(50'000, ' ') + "x").size(), 2u);
  EXPECT_EQ(words("llama-bpe", std::string(50'000, ' ')).size(), 1u);
}

TEST(PreTokenizer, TellsTheFamiliesApart) {
  EXPECT_EQ(words("gpt-2", "I'LL 1234"), (Words{"I", "'", "LL", " 1234"}));
  EXPECT_EQ(words("smollm", "I'LL 1234"), (Words{"I", "'", "LL", " ", "1", "2", "3", "4"}));
  EXPECT_EQ(words("qwen2", "I'LL 1234"), (Words{"I", "'LL", " ", "1", "2", "3", "4"}));
  EXPECT_EQ(words("llama-bpe", "I'LL 1234"), (Words{"I", "'LL", " ", "123", "4"}));
}

// As llama.cpp: a file that names no pre-tokenizer is cut by the oldest rules.
TEST(PreTokenizer, TakesNoNameAsDefault) {
  const Words expected{"a", "==", "b", " ", "123", "4", "!"};
  EXPECT_EQ(words("", "a==b 1234!"), expected);
  EXPECT_EQ(words("default", "a==b 1234!"), expected);
}

TEST(PreTokenizer, TreatsBrokenUtf8AsSymbols) {
  EXPECT_EQ(words("gpt-2", "a\xFF\xC3 b"), (Words{"a", "\xFF\xC3", " b"}));
  EXPECT_EQ(words("qwen2",
                  "a\xFF"
                  "b"),
            (Words{"a",
                   "\xFF"
                   "b"}));
}

// Case folding is ASCII's alone, as in llama.cpp: U+017F (long s) is no s.
TEST(PreTokenizer, FoldsOnlyAsciiInContractions) {
  EXPECT_EQ(words("qwen2", "x'\xC5\xBFz"), (Words{"x", "'\xC5\xBFz"}));
}

TEST(PreTokenizer, NamesWhatItDoesNotSupport) {
  const Result<PreTokenizer> refused = PreTokenizer::make("mmbert");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("'mmbert'"), std::string::npos);
  EXPECT_NE(refused.error().message.find("qwen2"), std::string::npos) << refused.error().message;
}

TEST(Pattern, WritesWhiteSpaceOut) {
  EXPECT_EQ(expand_white_space(R"(a\nb\p{L})"), R"(a\nb\p{L})");
  const std::string space = expand_white_space(R"(\s)");
  EXPECT_TRUE(space.starts_with("[\\x{9}-") && space.ends_with("]"));
  const std::string inside = expand_white_space(R"([^\s\p{L}])");
  EXPECT_TRUE(inside.starts_with("[^\\x{9}-") && inside.ends_with("\\p{L}]"));
  EXPECT_TRUE(expand_white_space(R"((?!\S))").starts_with("(?![^\\x{9}-"));
}

}  // namespace
}  // namespace godwit::tokenizer
