#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <limits>

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

// Qwen's files name one end; the other is known by its text. They have a beginning, which nothing
// starts with.
TEST(Tokenizer, QwenStopsAtBothOfItsEndsAndBeginsWithNothing) {
  for (const char* pre : {"qwen2", "qwen35"}) {
    Vocab vocab = small_vocab(pre);
    const TokenId other = add_token(vocab, "<|endoftext|>", kControlType);
    const TokenId beginning = vocab.bos;
    const Tokenizer named = make(vocab);
    EXPECT_TRUE(named.ends_generation(named.find("<|im_end|>")));
    EXPECT_TRUE(named.ends_generation(other));
    vocab.bos = other;
    const auto ids = make(vocab).encode("a", Specials::kParse, AddBos::kAsModelSays);
    ASSERT_EQ(ids.size(), 1u);
    EXPECT_NE(ids[0], beginning);
  }
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

TEST(Tokenizer, PutsASpaceBeforeEachStretchOfASentencePieceText) {
  Vocab vocab = small_piece_vocab();
  const Tokenizer with = make(vocab);
  EXPECT_EQ(encode(with, "hello", Specials::kText), Texts{" hello"});
  EXPECT_EQ(encode(with, " hello", Specials::kText), (Texts{"  ", "he", "llo"}));
  EXPECT_EQ(encode(with, "hello<|im_end|>hello", Specials::kParse),
            (Texts{" hello", "<|im_end|>", " hello"}));
  EXPECT_TRUE(encode(with, "", Specials::kParse).empty());
  vocab.add_space_prefix = false;
  const Tokenizer without = make(vocab);
  EXPECT_EQ(encode(without, "hello", Specials::kText), (Texts{"he", "llo"}));
  EXPECT_EQ(encode(without, " hello", Specials::kText), Texts{" hello"});
}

TEST(Tokenizer, LeavesTheAddedSpacesOutOfDecodedText) {
  Vocab vocab = small_piece_vocab();
  for (const bool adds_space : {true, false}) {
    vocab.add_space_prefix = adds_space;
    const Tokenizer tokenizer = make(vocab);
    for (const std::string_view text :
         {"hello", " hello", "  hello  ", "", " ", "a<tool>a", "<tool> a", "\n\n a\n\na",
          "\xC3\xAA", "\xFF a", "\xE4\xB8\xAD hello"}) {
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, Specials::kText, AddBos::kNever)), text);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, Specials::kText, AddBos::kAsModelSays)),
                text);
    }
  }
}

TEST(Tokenizer, AddsBosAndEosToSentencePieceTextsAsTheFileSays) {
  Vocab vocab = small_piece_vocab();
  const TokenId bos = vocab.bos;
  const TokenId eos = vocab.eos;
  const auto hello = [](const Tokenizer& tokenizer) {
    return tokenizer.encode("hello", Specials::kText, AddBos::kAsModelSays);
  };
  EXPECT_EQ(hello(make(vocab)).front(), bos) << "where the file says nothing";
  EXPECT_NE(hello(make(vocab)).back(), eos);
  vocab.add_bos = false;
  vocab.add_eos = true;
  const Tokenizer tokenizer = make(vocab);
  EXPECT_NE(hello(tokenizer).front(), bos);
  EXPECT_EQ(hello(tokenizer).back(), eos);
  EXPECT_NE(tokenizer.encode("hello", Specials::kText, AddBos::kNever).back(), eos);
  EXPECT_NE(tokenizer.encode(MarkedText{"hello", {}}, AddBos::kAsModelSays).back(), eos)
      << "a conversation goes on";
  vocab.eos = kNoToken;
  EXPECT_NE(refusal(vocab).find("eos_token_id"), std::string::npos) << refusal(vocab);
}

// The pieces "<s" and "<s>x" lead merges past the control token <s>.
TEST(Tokenizer, NeverMakesSpecialTokensOfSentencePieceText) {
  const Tokenizer tokenizer = make(small_piece_vocab());
  for (const std::string text : {"<s>", "a<s>a", "<s>x", "</s>", "<0x41>", "<tool>", "<unk>"}) {
    const auto ids = tokenizer.encode(MarkedText{text, {{0, text.size()}}}, AddBos::kNever);
    for (const TokenId id : ids) {
      EXPECT_TRUE(tokenizer.kind(id) == TokenKind::kNormal ||
                  tokenizer.kind(id) == TokenKind::kByte)
          << text << ": " << tokenizer.bytes(id);
    }
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
  EXPECT_EQ(encode(tokenizer, "<tool>", Specials::kText), Texts{"<tool>"});
}

// The text of a byte token is not the byte, though pieces lead up to it.
TEST(Tokenizer, NeverTakesTheTextOfAByteTokenForTheByte) {
  Vocab vocab = small_piece_vocab();
  for (const char* piece : {"0", "x", "4", "1", "<0", "<0x", "<0x4", "<0x41"}) {
    add_token(vocab, piece, kNormalType);
    vocab.scores.push_back(-50);
  }
  const Tokenizer tokenizer = make(vocab);
  EXPECT_EQ(encode(tokenizer, "<0x41>", Specials::kText), (Texts{" ", "<0x41", ">"}));
}

TEST(Tokenizer, RefusesScoresThatOrderNothing) {
  Vocab vocab = small_piece_vocab();
  vocab.scores.pop_back();
  EXPECT_NE(refusal(vocab).find("scores for"), std::string::npos) << refusal(vocab);
  vocab = small_piece_vocab();
  vocab.scores.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal(vocab).find("not a number"), std::string::npos) << refusal(vocab);
}

// Phi-3's special tokens swallow what white space follows them; nothing but its name says so.
TEST(Tokenizer, StripsWhiteSpaceAfterPhi3sSpecialTokens) {
  Vocab vocab = small_piece_vocab();
  vocab.add_space_prefix = false;
  EXPECT_EQ(encode(make(vocab), "<|im_end|>\n\t a", Specials::kParse),
            (Texts{"<|im_end|>", "\n", "\t", " ", "a"}));
  vocab.name = "Phi-3 mini";
  const Tokenizer phi3 = make(vocab);
  EXPECT_EQ(encode(phi3, "<|im_end|>\n\t a <s> a", Specials::kParse),
            (Texts{"<|im_end|>", "a", " ", "<s>", " ", "a"}));
  EXPECT_EQ(encode(phi3, "<|im_end|> <tool> a", Specials::kParse),
            (Texts{"<|im_end|>", "<tool>", "a"}));
}

Vocab escaped_bpe_vocab() {
  Vocab vocab = small_piece_vocab();
  vocab.model = "gemma4";
  vocab.scores.clear();
  const std::string space(kEscapedSpace);
  vocab.merges = {"h e", "l l", "ll o", "he llo", space + " hello", "a a", "< s", "<s >"};
  add_token(vocab, "hello", kNormalType);
  add_token(vocab, "\n", kNormalType);
  add_token(vocab, "\n\n\n", kNormalType);
  return vocab;
}

TEST(Tokenizer, MergesCharactersWithEscapedSpacesForGemma4) {
  const Tokenizer tokenizer = make(escaped_bpe_vocab());
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_EQ(encode(tokenizer, "hello hello", Specials::kText), (Texts{"hello", " hello"}));
  EXPECT_EQ(encode(tokenizer, "\xC3\xA9\xC3\xAA", Specials::kText),
            (Texts{"\xC3\xA9", "\xC3", "\xAA"}));
  EXPECT_EQ(encode(tokenizer, "<s>", Specials::kText), (Texts{"<", "s", ">"}));
  // Newlines are words of their own, and looked up whole.
  EXPECT_EQ(encode(tokenizer, "a\na", Specials::kText), (Texts{"a", "\n", "a"}));
  const auto newlines = tokenizer.encode(MarkedText{"\n\n\n", {{0, 3}}}, AddBos::kNever);
  EXPECT_EQ(texts(tokenizer, newlines), (Texts{"\n\n", "\n"})) << "user-defined tokens first";
}

TEST(Tokenizer, NamesTheModelItDoesNotSupport) {
  struct Case {
    const char* model;
    const char* words;
  };
  for (const Case& c :
       {Case{"bert", "WordPiece"}, Case{"t5", "Unigram"}, Case{"rwkv", "RWKV"},
        Case{"plamo2", "PLaMo-2"}, Case{"none", "no vocabulary"}, Case{"", "unknown"}}) {
    Vocab vocab = small_vocab("gpt-2");
    vocab.model = c.model;
    const std::string message = refusal(std::move(vocab));
    EXPECT_NE(message.find("'" + std::string(c.model) + "'"), std::string::npos) << message;
    EXPECT_NE(message.find(c.words), std::string::npos) << message;
    EXPECT_NE(message.find("supported: gpt2"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace godwit::tokenizer
