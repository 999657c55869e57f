#include "tokenizer/plain_text.h"

#include <cmath>
#include <utility>

#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

// Byte tokens that a file calls something special are not for plain text.
ByteTokens plain_byte_tokens(const TokenIds& ids, const TokenRoles& roles) {
  ByteTokens tokens = find_byte_tokens(ids);
  for (TokenId& token : tokens) {
    if (!token.exists()) continue;
    const TokenKind kind = roles.kinds[static_cast<size_t>(token.value)];
    if (kind != TokenKind::kByte && kind != TokenKind::kNormal) token = kNoToken;
  }
  return tokens;
}

Result<std::vector<float>> checked_scores(const Vocab& vocab) {
  if (vocab.scores.size() != vocab.tokens.size()) {
    return fail("tokenizer: {} scores for {} tokens", vocab.scores.size(), vocab.tokens.size());
  }
  std::vector<float> scores;
  scores.reserve(vocab.scores.size());
  for (size_t i = 0; i < vocab.scores.size(); ++i) {
    // Without an order among scores there is none among merges.
    if (std::isnan(vocab.scores[i])) {
      return fail("tokenizer: the score of token {} is not a number", i);
    }
    scores.push_back(static_cast<float>(vocab.scores[i]));
  }
  return scores;
}

bool is_white_space(std::string_view text) {
  return unescape_spaces(text).find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

TokenIds plain_words(TokenIds ids, const TokenRoles& roles, Spelling spelling) {
  std::erase_if(ids, [&](const auto& entry) {
    const auto& [text, id] = entry;
    switch (roles.kinds[static_cast<size_t>(id)]) {
      case TokenKind::kNormal:
      case TokenKind::kUnused:
        return false;
      case TokenKind::kByte:
        return spelling == Spelling::kEscapedSpaces;
      case TokenKind::kUnknown:
      case TokenKind::kControl:
        return true;
      case TokenKind::kUserDefined:
        return spelling == Spelling::kByteLevel ? next_utf8(text).bytes != text.size()
                                                : !is_white_space(text);
    }
    return true;
  });
  return ids;
}

Result<PlainText> PlainText::make(const Vocab& vocab, const TokenIds& ids,
                                  const TokenRoles& roles) {
  if (vocab.model == kSentencePieceModel) return make_pieces(vocab, ids, roles);
  return make_byte_pairs(vocab, ids, roles);
}

Result<PlainText> PlainText::make_byte_pairs(const Vocab& vocab, const TokenIds& ids,
                                             const TokenRoles& roles) {
  Result<PreTokenizer> pretokenizer =
      PreTokenizer::make(vocab.model == "gemma4" ? "gemma4" : vocab.pre);
  if (!pretokenizer) return fail(pretokenizer.error());
  const Spelling spelling = pretokenizer->spelling();
  const bool adds_bos = pretokenizer->adds_bos(vocab.add_bos);
  TokenIds words = plain_words(ids, roles, spelling);
  const ByteTokens byte_tokens = plain_byte_tokens(ids, roles);
  MergeTable merges({.words = words,
                     .n_tokens = static_cast<int32_t>(vocab.tokens.size()),
                     .merges = vocab.merges,
                     .spelling = spelling,
                     .byte_tokens = byte_tokens});
  PlainText plain(BytePairText{std::move(*pretokenizer), std::move(words), std::move(merges)});
  plain.spelling_ = spelling;
  plain.adds_bos_ = adds_bos;
  plain.adds_eos_ = vocab.add_eos.value_or(false);
  return plain;
}

Result<PlainText> PlainText::make_pieces(const Vocab& vocab, const TokenIds& ids,
                                         const TokenRoles& roles) {
  Result<std::vector<float>> scores = checked_scores(vocab);
  if (!scores) return fail(scores.error());
  const bool has_unknown = std::cmp_less(vocab.unknown.value, vocab.tokens.size());
  PlainText plain(
      PieceText{PieceTable(plain_words(ids, roles, Spelling::kEscapedSpaces), std::move(*scores),
                           plain_byte_tokens(ids, roles), has_unknown ? vocab.unknown : kNoToken)});
  plain.spelling_ = Spelling::kEscapedSpaces;
  plain.adds_bos_ = vocab.add_bos.value_or(true);
  plain.adds_eos_ = vocab.add_eos.value_or(false);
  plain.adds_space_ = vocab.add_space_prefix.value_or(true);
  return plain;
}

PlainTextEncoder::PlainTextEncoder(const PlainText& plain) : plain_(&plain) {
  if (const auto* words = std::get_if<BytePairText>(&plain.parts_)) bpe_.emplace(words->merges);
  if (const auto* whole = std::get_if<PieceText>(&plain.parts_)) pieces_.emplace(whole->pieces);
}

void PlainTextEncoder::encode(std::string_view text, std::vector<TokenId>& out) {
  if (const auto* words = std::get_if<BytePairText>(&plain_->parts_)) {
    if (plain_->spelling_ == Spelling::kByteLevel) return encode_words(*words, text, out);
    return encode_words(*words, escape_spaces(text), out);
  }
  std::string escaped = escape_spaces(text);
  if (plain_->adds_space_) escaped.insert(0, kEscapedSpace);
  const std::span<const TokenId> tokens = pieces_->encode(escaped);
  out.insert(out.end(), tokens.begin(), tokens.end());
}

void PlainTextEncoder::encode_words(const BytePairText& parts, std::string_view text,
                                    std::vector<TokenId>& out) {
  for (const TextRange& piece : parts.pretokenizer.split(text)) {
    const std::string_view word = text.substr(piece.begin, piece.end - piece.begin);
    if (parts.pretokenizer.looks_up_whole(word)) {
      const auto whole = plain_->spelling_ == Spelling::kByteLevel
                             ? parts.words.find(to_byte_level(word))
                             : parts.words.find(word);
      if (whole != parts.words.end()) {
        out.push_back({whole->second});
        continue;
      }
    }
    const std::span<const TokenId> tokens = bpe_->encode(word);
    out.insert(out.end(), tokens.begin(), tokens.end());
  }
}

}  // namespace godwit::tokenizer
