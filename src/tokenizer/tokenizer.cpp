#include "tokenizer/tokenizer.h"

#include <charconv>
#include <utility>

#include "base/check.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/token_roles.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab.h"

namespace godwit::tokenizer {
namespace {

// Where ids are found by text: the first of equal texts would hide the others, so there are none.
// An empty text is an entry that nothing can produce, and is not found.
Result<MergeTable::Ids> index_tokens(const Vocab& vocab) {
  MergeTable::Ids ids;
  ids.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.tokens[i].empty()) continue;
    const auto [first, is_new] = ids.try_emplace(vocab.tokens[i], static_cast<int32_t>(i));
    if (!is_new) {
      return fail("tokenizer: tokens {} and {} have the same text '{}'", first->second, i,
                  vocab.tokens[i]);
    }
  }
  return ids;
}

// The text of a byte token is "<0x0A>". Another text stands for itself.
std::string byte_token_bytes(std::string_view text) {
  if (text.size() == 6 && text.starts_with("<0x") && text.ends_with('>')) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
    if (error == std::errc{} && end == text.data() + 5) return {static_cast<char>(byte)};
  }
  return std::string(text);
}

std::string bytes_of(std::string_view text, TokenKind kind) {
  switch (kind) {
    case TokenKind::kNormal:
      return from_byte_level(text);
    case TokenKind::kByte:
      return byte_token_bytes(text);
    case TokenKind::kUnused:
      return {};
    case TokenKind::kUnknown:
    case TokenKind::kControl:
    case TokenKind::kUserDefined:
      return std::string(text);
  }
  return {};
}

bool is_hidden(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

Recognised when_recognised(std::string_view text, TokenKind kind) {
  if (is_hidden(kind)) return Recognised::kWhenParsing;
  const bool is_space = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return is_space ? Recognised::kEverywhere : Recognised::kOutsideUserText;
}

SpecialTokens make_specials(const Vocab& vocab, const TokenRoles& roles) {
  std::vector<SpecialToken> specials;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view text = vocab.tokens[i];
    const TokenKind kind = roles.kinds[i];
    if (text.empty() || !(is_hidden(kind) || kind == TokenKind::kUserDefined)) continue;
    specials.push_back({TokenId{static_cast<int32_t>(i)}, text, when_recognised(text, kind)});
  }
  return SpecialTokens(specials);
}

// What plain text may become: no special token, whatever the merges spell. Outside user ranges
// nothing is lost by that, since no special text is left there. A user-defined token of a single
// character stays: it may be the only one its byte has.
MergeTable::Ids plain_words(MergeTable::Ids ids, const TokenRoles& roles) {
  std::erase_if(ids, [&](const auto& entry) {
    const auto& [text, id] = entry;
    const TokenKind kind = roles.kinds[static_cast<size_t>(id)];
    const bool is_character = next_utf8(text).bytes == text.size();
    return is_hidden(kind) || (kind == TokenKind::kUserDefined && !is_character);
  });
  return ids;
}

Result<bool> decide_bos(const Vocab& vocab, const PreTokenizer& pretokenizer) {
  const bool adds = vocab.add_bos.value_or(pretokenizer.adds_bos());
  if (adds && !vocab.bos.exists()) {
    return fail(
        "tokenizer: the file asks for a beginning-of-sequence token "
        "(tokenizer.ggml.add_bos_token) but names none (tokenizer.ggml.bos_token_id)");
  }
  return adds;
}

}  // namespace

struct Tokenizer::Impl {
  Vocab vocab;
  MergeTable::Ids ids;    // every token by its text; views into vocab.tokens
  MergeTable::Ids words;  // those that plain text may become
  TokenRoles roles;
  PreTokenizer pretokenizer;
  SpecialTokens specials;
  MergeTable merges;
  std::vector<std::string> bytes;  // [n_tokens]
  bool adds_bos = false;

  std::vector<TokenId> encode(std::string_view text, std::span<const Fragment> fragments,
                              AddBos add_bos) const;
};

std::vector<TokenId> Tokenizer::Impl::encode(std::string_view text,
                                             std::span<const Fragment> fragments,
                                             AddBos add_bos) const {
  std::vector<TokenId> out;
  out.reserve(text.size() / 4 + 1);
  if (add_bos == AddBos::kAsModelSays && adds_bos) out.push_back(vocab.bos);
  BpeEncoder bpe(merges);
  for (const Fragment& fragment : fragments) {
    if (fragment.token.exists()) {
      out.push_back(fragment.token);
      continue;
    }
    const TextRange& range = fragment.range;
    const std::string_view plain = text.substr(range.begin, range.end - range.begin);
    for (const TextRange& piece : pretokenizer.split(plain)) {
      const std::string_view word = plain.substr(piece.begin, piece.end - piece.begin);
      const auto whole =
          pretokenizer.whole_words_first() ? words.find(to_byte_level(word)) : words.end();
      if (whole != words.end()) {
        out.push_back({whole->second});
        continue;
      }
      const std::span<const TokenId> tokens = bpe.encode(word);
      out.insert(out.end(), tokens.begin(), tokens.end());
    }
  }
  return out;
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const gguf::File& file) {
  Result<Vocab> vocab = read_vocab(file);
  if (!vocab) return fail(vocab.error());
  return from_vocab(std::move(*vocab));
}

Result<Tokenizer> Tokenizer::from_vocab(Vocab vocab) {
  if (vocab.model != "gpt2") {
    return fail(
        "tokenizer: tokenizer.ggml.model is '{}', which is not supported; supported: "
        "gpt2 (byte-level BPE)",
        vocab.model);
  }
  if (vocab.tokens.empty()) return fail("tokenizer: the vocabulary is empty");
  Result<PreTokenizer> pretokenizer = PreTokenizer::make(vocab.pre);
  if (!pretokenizer) return fail(pretokenizer.error());
  Result<MergeTable::Ids> ids = index_tokens(vocab);
  if (!ids) return fail(ids.error());
  Result<TokenRoles> roles = make_roles(vocab, *ids);
  if (!roles) return fail(roles.error());
  const Result<bool> adds_bos = decide_bos(vocab, *pretokenizer);
  if (!adds_bos) return fail(adds_bos.error());

  SpecialTokens specials = make_specials(vocab, *roles);
  MergeTable::Ids words = plain_words(*ids, *roles);
  const auto n_tokens = static_cast<int32_t>(vocab.tokens.size());
  MergeTable merges(words, n_tokens, vocab.merges);
  std::vector<std::string> bytes;
  bytes.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    bytes.push_back(bytes_of(vocab.tokens[i], roles->kinds[i]));
  }
  // Moving the vocabulary moves the vector of its tokens, not the strings that the views point to.
  return Tokenizer(std::unique_ptr<Impl>(new Impl{std::move(vocab), std::move(*ids),
                                                  std::move(words), std::move(*roles),
                                                  std::move(*pretokenizer), std::move(specials),
                                                  std::move(merges), std::move(bytes), *adds_bos}));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, Specials specials,
                                       AddBos add_bos) const {
  return impl_->encode(text, impl_->specials.partition(text, specials, {}), add_bos);
}

std::vector<TokenId> Tokenizer::encode(const MarkedText& text, AddBos add_bos) const {
  const std::vector<Fragment> fragments =
      impl_->specials.partition(text.text, Specials::kParse, text.user_ranges);
  return impl_->encode(text.text, fragments, add_bos);
}

std::string_view Tokenizer::bytes(TokenId id) const {
  check(id.exists() && id.value < size(), "a token id outside the vocabulary");
  return impl_->bytes[static_cast<size_t>(id.value)];
}

TokenKind Tokenizer::kind(TokenId id) const {
  check(id.exists() && id.value < size(), "a token id outside the vocabulary");
  return impl_->roles.kinds[static_cast<size_t>(id.value)];
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    if (!is_hidden(kind(id))) text += bytes(id);
  }
  return text;
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(impl_->vocab.tokens.size()); }
TokenId Tokenizer::bos() const { return impl_->vocab.bos; }
TokenId Tokenizer::eos() const { return impl_->vocab.eos; }
bool Tokenizer::adds_bos() const { return impl_->adds_bos; }

bool Tokenizer::ends_generation(TokenId id) const {
  check(id.exists() && id.value < size(), "a token id outside the vocabulary");
  return impl_->roles.ends_generation[static_cast<size_t>(id.value)];
}

TokenId Tokenizer::find(std::string_view text) const {
  const auto id = impl_->ids.find(text);
  return id == impl_->ids.end() ? kNoToken : TokenId{id->second};
}

}  // namespace godwit::tokenizer
