#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tokenizer/small_vocab.h"

namespace godwit::tokenizer {
namespace {

Tokenizer make(Vocab vocab) {
  Result<Tokenizer> tokenizer = Tokenizer::from_vocab(std::move(vocab));
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

std::string refusal(Vocab vocab) {
  const Result<Tokenizer> tokenizer = Tokenizer::from_vocab(std::move(vocab));
  return tokenizer ? "accepted" : tokenizer.error().message;
}

using Texts = std::vector<std::string>;

Texts texts(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  Texts out;
  for (const TokenId id : ids) out.emplace_back(tokenizer.bytes(id));
  return out;
}

Texts encode(const Tokenizer& tokenizer, std::string_view text, Specials specials) {
  return texts(tokenizer, tokenizer.encode(text, specials, AddBos::kNever));
}

TEST(Tokenizer, MergesInsideWordsOnly) {
  const Tokenizer tokenizer = make(small_vocab("gpt-2"));
  EXPECT_EQ(encode(tokenizer, "hello hello", Specials::kText), (Texts{"hello", " hello"}));
  EXPECT_EQ(encode(tokenizer, "aaaaa", Specials::kText), (Texts{"aaaa", "a"}));
  EXPECT_EQ(encode(tokenizer, "12", Specials::kText), Texts{"12"});
  EXPECT_EQ(encode(make(small_vocab("smollm")), "12", Specials::kText), (Texts{"1", "2"}));
  EXPECT_TRUE(encode(tokenizer, "", Specials::kParse).empty());
}

TEST(Tokenizer, RecognisesControlTokensOnlyWhenParsing) {
  const Tokenizer tokenizer = make(small_vocab("gpt-2"));
  EXPECT_EQ(encode(tokenizer, "a<|im_end|>", Specials::kParse), (Texts{"a", "<|im_end|>"}));
  EXPECT_EQ(encode(tokenizer, "<|im_end|>", Specials::kText).size(), 8u) << "<| i m _ e n d |>";
  EXPECT_EQ(encode(tokenizer, "<tool><tool>", Specials::kText), Texts{"<tool><tool>"});
}

TEST(Tokenizer, KeepsSpecialTextInUserRangesAsText) {
  const Tokenizer tokenizer = make(small_vocab("gpt-2"));
  const std::string user = "<|im_end|><tool>";
  const MarkedText text{"<|start|>" + user + "<|im_end|>", {{9, 9 + user.size()}}};
  const std::vector<TokenId> ids = tokenizer.encode(text, AddBos::kNever);
  EXPECT_EQ(ids.front(), tokenizer.find("<|start|>"));
  EXPECT_EQ(ids.back(), tokenizer.find("<|im_end|>"));
  for (size_t i = 1; i + 1 < ids.size(); ++i) {
    EXPECT_EQ(tokenizer.kind(ids[i]), TokenKind::kNormal) << tokenizer.bytes(ids[i]);
  }
}

// llama-bpe looks words up whole, and "<|" is a word: a user-defined token must not come out.
TEST(Tokenizer, FindsNoUserDefinedTokenByLookingUpAWord) {
  const Tokenizer tokenizer = make(small_vocab("llama-bpe"));
  const std::vector<TokenId> ids = tokenizer.encode(MarkedText{"<|", {{0, 2}}}, AddBos::kNever);
  EXPECT_EQ(texts(tokenizer, ids), (Texts{"<", "|"}));
  EXPECT_EQ(encode(tokenizer, "<|", Specials::kText), Texts{"<|"});
}

TEST(Tokenizer, RecognisesNothingThatOnlyTouchesAUserRange) {
  const Tokenizer tokenizer = make(small_vocab("gpt-2"));
  const TokenId end = tokenizer.find("<|im_end|>");
  const std::string text = "x<|im_end|>y";
  for (size_t begin = 0; begin < text.size(); ++begin) {
    const auto ids = tokenizer.encode(MarkedText{text, {{begin, begin + 1}}}, AddBos::kNever);
    const bool found = std::find(ids.begin(), ids.end(), end) != ids.end();
    EXPECT_EQ(found, begin == 0 || begin == 11) << begin;
  }
}

TEST(Tokenizer, MergesAcrossTheBordersOfUserRanges) {
  const Tokenizer tokenizer = make(small_vocab("gpt-2"));
  const std::string text = "<|start|>hello hello aaaa\n\n<|stop|>";
  const std::vector<TokenId> whole = tokenizer.encode(text, Specials::kParse, AddBos::kNever);
  for (size_t begin = 9; begin < 26; ++begin) {
    for (size_t end = begin + 1; end <= 27; ++end) {
      EXPECT_EQ(tokenizer.encode(MarkedText{text, {{begin, end}}}, AddBos::kNever), whole);
    }
  }
}

TEST(Tokenizer, AddsBosAsTheFileSays) {
  Vocab vocab = small_vocab("gpt-2");
  EXPECT_FALSE(make(vocab).adds_bos());
  vocab.add_bos = true;
  const Tokenizer tokenizer = make(vocab);
  const std::vector<TokenId> with{tokenizer.bos(), tokenizer.find("a")};
  EXPECT_EQ(tokenizer.encode("a", Specials::kText, AddBos::kAsModelSays), with);
  EXPECT_EQ(tokenizer.encode("a", Specials::kText, AddBos::kNever).size(), 1u);
  EXPECT_EQ(tokenizer.encode(MarkedText{"a", {}}, AddBos::kAsModelSays), with);
}

TEST(Tokenizer, AddsBosForLlama3UnlessTheFileSaysNo) {
  Vocab vocab = small_vocab("llama-bpe");
  EXPECT_TRUE(make(vocab).adds_bos());
  vocab.add_bos = false;
  EXPECT_FALSE(make(vocab).adds_bos());
}

TEST(Tokenizer, LooksUpWholeWordsFirstForLlama3) {
  for (const char* pre : {"llama-bpe", "qwen2"}) {
    Vocab vocab = small_vocab(pre);
    add_token(vocab, "zebra", kNormalType);  // no merges lead to it
    const size_t n = encode(make(std::move(vocab)), "zebra", Specials::kText).size();
    EXPECT_EQ(n, std::string_view(pre) == "qwen2" ? 5u : 1u);
  }
}

TEST(Tokenizer, DecodesWhatItEncodedWhateverTheBytes) {
  RandomStream random(5);
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe", "default"}) {
    const Tokenizer tokenizer = make(small_vocab(pre));
    for (int round = 0; round < 2'000; ++round) {
      std::string text;
      for (uint64_t n = random.below(40); n > 0; --n) {
        text += random.below(2) == 0 ? static_cast<char>(random.below(256))
                                     : "a1 '<|hel\n\xC3\xA9"[random.below(12)];
      }
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, Specials::kText, AddBos::kNever)), text);
    }
  }
}

TEST(Tokenizer, LeavesControlTokensOutOfDecodedText) {
  const Tokenizer tokenizer = make(small_vocab("gpt-2"));
  const auto ids = tokenizer.encode("<|start|>a<tool><|stop|>", Specials::kParse, AddBos::kNever);
  EXPECT_EQ(tokenizer.decode(ids), "a<tool>");
  EXPECT_EQ(tokenizer.bytes(ids.back()), "<|stop|>");
}

TEST(Tokenizer, KnowsWhereGenerationEnds) {
  Vocab vocab = small_vocab("gpt-2");
  vocab.eot = add_token(vocab, "<turn-over>", kControlType);
  // Its text makes it a control token and an end, whatever type the file gives it.
  const TokenId by_text = add_token(vocab, "<|eot_id|>", kNormalType);
  const TokenId file_end = add_token(vocab, "<|file_sep|>", kControlType);
  const TokenId eos = vocab.eos;
  const TokenId eot = vocab.eot;
  const Tokenizer tokenizer = make(std::move(vocab));
  for (const TokenId id : {eos, eot, by_text, file_end, tokenizer.find("<|im_end|>")}) {
    EXPECT_TRUE(tokenizer.ends_generation(id)) << tokenizer.bytes(id);
  }
  for (const TokenId id : {tokenizer.bos(), tokenizer.find("a"), tokenizer.find("<tool>")}) {
    EXPECT_FALSE(tokenizer.ends_generation(id)) << tokenizer.bytes(id);
  }
  EXPECT_EQ(tokenizer.kind(by_text), TokenKind::kControl);
}

TEST(Tokenizer, SparesMessageEndsOfHarmony) {
  Vocab vocab = small_vocab("gpt-2");
  const TokenId end = add_token(vocab, "<|end|>", kControlType);
  EXPECT_TRUE(make(vocab).ends_generation(end));
  add_token(vocab, "<|return|>", kControlType);
  add_token(vocab, "<|call|>", kControlType);
  EXPECT_FALSE(make(vocab).ends_generation(end));
}

// Merges may spell a control token: plain text must not become it all the same.
TEST(Tokenizer, NeverMergesPlainTextIntoAControlToken) {
  for (const char* pre : {"gpt-2", "llama-bpe"}) {
    Vocab vocab = small_vocab(pre);
    const TokenId control = add_token(vocab, "ab", kControlType);
    vocab.merges.emplace_back("a b");
    const Tokenizer tokenizer = make(std::move(vocab));
    EXPECT_EQ(encode(tokenizer, "ab", Specials::kText), (Texts{"a", "b"}));
    EXPECT_EQ(tokenizer.encode("ab", Specials::kParse, AddBos::kNever), std::vector{control});
  }
}

TEST(Tokenizer, GivesTheBytesOfEachKindOfToken) {
  Vocab vocab = small_vocab("gpt-2");
  const TokenId space = add_token(vocab, "\xC4\xA0x", kNormalType);
  const TokenId literal = add_token(vocab, "\xC4\xA0y", kUserDefinedType);
  const TokenId byte = add_token(vocab, "<0x0A>", 6);
  const TokenId unused = add_token(vocab, "[PAD1]", 5);
  const TokenId empty = add_token(vocab, "", kNormalType);
  const Tokenizer tokenizer = make(std::move(vocab));
  EXPECT_EQ(tokenizer.bytes(space), " x");
  EXPECT_EQ(tokenizer.bytes(literal), "\xC4\xA0y");
  EXPECT_EQ(tokenizer.bytes(byte), "\n");
  EXPECT_EQ(tokenizer.bytes(unused), "");
  EXPECT_EQ(tokenizer.bytes(empty), "");
  EXPECT_EQ(tokenizer.find("\xC4\xA0x"), space);
  EXPECT_EQ(tokenizer.find(" x"), kNoToken);
  EXPECT_EQ(tokenizer.find(""), kNoToken);
}

TEST(Tokenizer, RefusesVocabulariesThatContradictThemselves) {
  Vocab vocab;
  vocab.model = "gpt2";
  EXPECT_EQ(refusal(vocab), "tokenizer: the vocabulary is empty");
  vocab = small_vocab("gpt-2");
  vocab.tokens.back() = "a";
  EXPECT_NE(refusal(vocab).find("have the same text 'a'"), std::string::npos) << refusal(vocab);
  vocab = small_vocab("gpt-2");
  vocab.types.pop_back();
  EXPECT_NE(refusal(vocab).find("token types for"), std::string::npos) << refusal(vocab);
  vocab = small_vocab("gpt-2");
  vocab.eos = {static_cast<int32_t>(vocab.tokens.size())};
  EXPECT_NE(refusal(vocab).find("the eos token is"), std::string::npos) << refusal(vocab);
  vocab = small_vocab("llama-bpe");
  vocab.bos = kNoToken;
  EXPECT_NE(refusal(vocab).find("bos_token_id"), std::string::npos) << refusal(vocab);
}

TEST(Tokenizer, NamesTheModelItDoesNotSupport) {
  for (const char* model : {"llama", "bert", "t5", "rwkv", ""}) {
    Vocab vocab = small_vocab("gpt-2");
    vocab.model = model;
    const std::string message = refusal(std::move(vocab));
    EXPECT_NE(message.find("'" + std::string(model) + "'"), std::string::npos) << message;
    EXPECT_NE(message.find("supported: gpt2"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace godwit::tokenizer
