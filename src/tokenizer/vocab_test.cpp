// Tokenizers out of files: small ones written here, and the real one of SmolLM2 where it is.
#include "tokenizer/vocab.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gguf/writer.h"
#include "testing/source_dir.h"
#include "testing/temporary_folder.h"
#include "tokenizer/small_vocab.h"
#include "tokenizer/tokenizer.h"

namespace godwit::tokenizer {
namespace {

std::vector<gguf::KeyValue> metadata(const Vocab& vocab) {
  return {gguf::make_string("tokenizer.ggml.model", vocab.model),
          gguf::make_string("tokenizer.ggml.pre", vocab.pre),
          gguf::make_strings("tokenizer.ggml.tokens", vocab.tokens),
          gguf::make_ints("tokenizer.ggml.token_type", vocab.types),
          gguf::make_strings("tokenizer.ggml.merges", vocab.merges),
          gguf::make_uint("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(vocab.bos.value)),
          gguf::make_uint("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(vocab.eos.value)),
          gguf::make_bool("tokenizer.ggml.add_bos_token", true)};
}

Result<Vocab> write_and_read(const std::vector<gguf::KeyValue>& values) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder.file("vocab.gguf");
  Result<gguf::Writer> writer = gguf::Writer::create(path, values, {});
  if (!writer) return fail(writer.error());
  const Status written = writer->finish();
  if (!written) return fail(written.error());
  const Result<gguf::File> file = gguf::File::open(path);
  if (!file) return fail(file.error());
  return read_vocab(*file);
}

void replace(std::vector<gguf::KeyValue>& values, gguf::KeyValue with) {
  for (gguf::KeyValue& value : values) {
    if (value.key == with.key) value = with;
  }
}

TEST(Vocab, ReadsWhatTheFileSays) {
  const Vocab written = small_vocab("qwen2");
  const Result<Vocab> vocab = write_and_read(metadata(written));
  ASSERT_TRUE(vocab.has_value()) << vocab.error().message;
  EXPECT_EQ(vocab->model, "gpt2");
  EXPECT_EQ(vocab->pre, "qwen2");
  EXPECT_EQ(vocab->tokens, written.tokens);
  EXPECT_EQ(vocab->types, written.types);
  EXPECT_EQ(vocab->merges, written.merges);
  EXPECT_EQ(vocab->bos, written.bos);
  EXPECT_EQ(vocab->eos, written.eos);
  EXPECT_EQ(vocab->eot, kNoToken);
  EXPECT_EQ(vocab->add_bos, true);
}

TEST(Vocab, NamesTheKeyThatIsMissing) {
  const std::vector<gguf::KeyValue> all = metadata(small_vocab("qwen2"));
  for (const size_t left_out : {0u, 2u, 4u}) {
    std::vector<gguf::KeyValue> values = all;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(left_out));
    const Result<Vocab> vocab = write_and_read(values);
    ASSERT_FALSE(vocab.has_value());
    EXPECT_NE(vocab.error().message.find(all[left_out].key), std::string::npos)
        << vocab.error().message;
  }
}

TEST(Vocab, RefusesValuesOfTheWrongType) {
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.tokens",
                          "tokenizer.ggml.token_type", "tokenizer.ggml.add_bos_token"}) {
    std::vector<gguf::KeyValue> values = metadata(small_vocab("qwen2"));
    replace(values, gguf::make_float(key, 1.5f));
    const Result<Vocab> vocab = write_and_read(values);
    ASSERT_FALSE(vocab.has_value()) << key;
    EXPECT_NE(vocab.error().message.find(key), std::string::npos) << vocab.error().message;
  }
}

TEST(Vocab, TakesMinusOneAsNoToken) {
  std::vector<gguf::KeyValue> values = metadata(small_vocab("qwen2"));
  replace(values, gguf::make_uint("tokenizer.ggml.bos_token_id", 0xFFFFFFFFu));
  const Result<Vocab> vocab = write_and_read(values);
  ASSERT_TRUE(vocab.has_value()) << vocab.error().message;
  EXPECT_EQ(vocab->bos, kNoToken);
}

// Where `godwit pull smollm2` puts the model, unless the environment names another place.
std::filesystem::path smollm2_path() {
  if (const char* path = std::getenv("GODWIT_TEST_MODEL")) return path;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root = cache != nullptr && *cache != '\0'
                                         ? std::filesystem::path(cache)
                                         : std::filesystem::path(home ? home : "") / ".cache";
  return root / "godwit/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

class SmolLm2 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(smollm2_path())) {
      GTEST_SKIP() << "no " << smollm2_path().string() << " (godwit pull smollm2 fetches it)";
    }
    Result<gguf::File> file = gguf::File::open(smollm2_path());
    ASSERT_TRUE(file.has_value()) << file.error().message;
    Result<Tokenizer> tokenizer = Tokenizer::load(*file);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    tokenizer_.emplace(std::move(*tokenizer));
  }

  static nlohmann::json fixture(const std::string& name) {
    std::ifstream in(testing::source_dir() / "tests/fixtures/tokenizer" / name);
    return nlohmann::json::parse(in);
  }
  std::vector<int> ids(const std::string& text, Specials specials) const {
    std::vector<int> out;
    for (const TokenId id : tokenizer_->encode(text, specials, AddBos::kAsModelSays)) {
      out.push_back(id.value);
    }
    return out;
  }

  std::optional<Tokenizer> tokenizer_;
};

// The ids come from llama.cpp (tools/make_tokenizer_fixture.py).
TEST_F(SmolLm2, GivesTheIdsOfLlamaCpp) {
  const nlohmann::json strings = fixture("corpus.json");
  const nlohmann::json expected = fixture("smollm2.json");
  ASSERT_GE(strings.size(), 300u);
  ASSERT_EQ(strings.size(), expected.size());
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto text = strings[i].get<std::string>();
    const nlohmann::json& parsed = expected[i].at("parse");
    const nlohmann::json& plain = expected[i].at("text");
    EXPECT_EQ(ids(text, Specials::kParse), parsed.get<std::vector<int>>()) << strings[i].dump();
    EXPECT_EQ(ids(text, Specials::kText),
              (plain.is_null() ? parsed : plain).get<std::vector<int>>())
        << strings[i].dump();
  }
}

TEST_F(SmolLm2, DecodesWhatItEncoded) {
  for (const nlohmann::json& string : fixture("corpus.json")) {
    const auto text = string.get<std::string>();
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, Specials::kText, AddBos::kNever)), text);
  }
}

TEST_F(SmolLm2, EndsGenerationWhereLlamaCppDoes) {
  EXPECT_EQ(tokenizer_->eos(), tokenizer_->find("<|im_end|>"));
  std::vector<std::string> ends;
  for (int32_t id = 0; id < tokenizer_->size(); ++id) {
    if (tokenizer_->ends_generation({id})) ends.emplace_back(tokenizer_->bytes({id}));
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"<|endoftext|>", "<|im_end|>", "<reponame>"}));
}

}  // namespace
}  // namespace godwit::tokenizer
