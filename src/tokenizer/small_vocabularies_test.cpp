// Vocabularies of a few hundred tokens, of each kind that is not byte-level, against the ids that
// llama.cpp gives with them (tools/make_tokenizer_fixture.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "testing/source_dir.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace godwit::tokenizer {
namespace {

using nlohmann::json;

const json& fixture() {
  static const json all = [] {
    std::ifstream in(testing::source_dir() / "tests/fixtures/tokenizer/small.json");
    return json::parse(in);
  }();
  return all;
}

std::optional<bool> flag(const json& vocabulary, const char* key) {
  return vocabulary.contains(key) ? std::optional<bool>(vocabulary[key].get<bool>()) : std::nullopt;
}

Tokenizer load(const json& entry) {
  const json& in = entry.at("vocabulary");
  Vocab vocab;
  vocab.name = entry.at("name");
  vocab.model = in.at("model");
  vocab.tokens = in.at("tokens").get<std::vector<std::string>>();
  vocab.types = in.at("token_type").get<std::vector<int64_t>>();
  if (in.contains("scores")) vocab.scores = in["scores"].get<std::vector<double>>();
  if (in.contains("merges")) vocab.merges = in["merges"].get<std::vector<std::string>>();
  vocab.bos = {in.at("bos_token_id").get<int32_t>()};
  vocab.eos = {in.at("eos_token_id").get<int32_t>()};
  vocab.unknown = {in.at("unknown_token_id").get<int32_t>()};
  vocab.add_bos = flag(in, "add_bos_token");
  vocab.add_eos = flag(in, "add_eos_token");
  vocab.add_space_prefix = flag(in, "add_space_prefix");
  Result<Tokenizer> tokenizer = Tokenizer::from_vocab(std::move(vocab));
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

std::vector<int> ids(const Tokenizer& tokenizer, const std::string& text, Specials specials) {
  std::vector<int> out;
  for (const TokenId id : tokenizer.encode(text, specials, AddBos::kAsModelSays)) {
    out.push_back(id.value);
  }
  return out;
}

class SmallVocabularies : public ::testing::TestWithParam<std::string> {};

TEST_P(SmallVocabularies, GiveTheIdsOfLlamaCpp) {
  const json& entry = fixture().at(GetParam());
  const Tokenizer tokenizer = load(entry);
  const json& strings = fixture().at("strings");
  ASSERT_GE(strings.size(), 250u);
  ASSERT_EQ(strings.size(), entry.at("ids").size());
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto text = strings[i].get<std::string>();
    const json& parsed = entry["ids"][i].at("parse");
    const json& plain = entry["ids"][i].at("text");
    EXPECT_EQ(ids(tokenizer, text, Specials::kParse), parsed.get<std::vector<int>>())
        << strings[i].dump(-1, ' ', true);
    EXPECT_EQ(ids(tokenizer, text, Specials::kText),
              (plain.is_null() ? parsed : plain).get<std::vector<int>>())
        << strings[i].dump(-1, ' ', true);
  }
}

// Phi-3's user-defined tokens, here runs of white space, swallow what white space follows them.
TEST_P(SmallVocabularies, DecodeWhatTheyEncoded) {
  const Tokenizer tokenizer = load(fixture().at(GetParam()));
  for (const json& string : fixture().at("strings")) {
    const auto text = string.get<std::string>();
    const bool has_run = text.find("\n\n") != std::string::npos ||
                         text.find("    ") != std::string::npos ||
                         text.find("<think>") != std::string::npos;
    if (GetParam() == "phi3" && has_run) continue;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, Specials::kText, AddBos::kAsModelSays)), text)
        << string.dump(-1, ' ', true);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, SmallVocabularies,
                         ::testing::Values("llama", "gemma", "phi3", "gemma4"));

}  // namespace
}  // namespace godwit::tokenizer
