#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "tokenizer/plain_text.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/spelling.h"
#include "tokenizer/token_roles.h"
#include "tokenizer/vocab.h"

namespace godwit::tokenizer {
namespace {

// Where ids are found by text: the first of equal texts would hide the others, so there are none.
// An empty text is an entry that nothing can produce, and is not found.
Result<TokenIds> index_tokens(const Vocab& vocab) {
  TokenIds ids;
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

bool is_hidden(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

Recognised when_recognised(std::string_view text, TokenKind kind) {
  if (is_hidden(kind)) return Recognised::kWhenParsing;
  const bool is_space = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return is_space ? Recognised::kEverywhere : Recognised::kOutsideUserText;
}

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

// No file says which special tokens swallow the white space beside them. llama.cpp knows them by
// the model's name or its pre-tokenizer, and so does this.
class StripRules {
 public:
  explicit StripRules(const Vocab& vocab) {
    std::string name = vocab.name;
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    is_phi3_ = contains_any(name, std::to_array<std::string_view>({"phi-3", "phi3"}));
    if (contains_any(vocab.pre, std::to_array<std::string_view>(
                                    {"jina-v2-de", "jina-v2-es", "jina-v2-code"}))) {
      mask_ = "<mask>";
    } else if (name.find("modern-bert") != std::string::npos) {
      mask_ = "[MASK]";
    }
  }

  [[nodiscard]] Strips of(std::string_view text) const {
    if (text == mask_) return Strips::kBefore;
    const bool keeps = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
    return is_phi3_ && !keeps ? Strips::kAfter : Strips::kNothing;
  }

 private:
  bool is_phi3_ = false;
  std::string_view mask_;
};

SpecialTokens make_specials(const Vocab& vocab, const TokenRoles& roles) {
  const StripRules rules(vocab);
  std::vector<SpecialToken> specials;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view text = vocab.tokens[i];
    const TokenKind kind = roles.kinds[i];
    if (text.empty() || !(is_hidden(kind) || kind == TokenKind::kUserDefined)) continue;
    specials.push_back(
        {TokenId{static_cast<int32_t>(i)}, text, when_recognised(text, kind), rules.of(text)});
  }
  return SpecialTokens(specials);
}

Status check_added(const Vocab& vocab, const PlainText& plain) {
  if (plain.adds_bos() && !vocab.bos.exists()) {
    return fail(
        "tokenizer: the file asks for a beginning-of-sequence token "
        "(tokenizer.ggml.add_bos_token) but names none (tokenizer.ggml.bos_token_id)");
  }
  if (plain.adds_eos() && !vocab.eos.exists()) {
    return fail(
        "tokenizer: the file asks for an end-of-sequence token "
        "(tokenizer.ggml.add_eos_token) but names none (tokenizer.ggml.eos_token_id)");
  }
  return {};
}

}  // namespace

struct Tokenizer::Impl {
  Vocab vocab;
  TokenIds ids;  // every token by its text; views into vocab.tokens
  TokenRoles roles;
  PlainText plain;
  SpecialTokens specials;
  std::vector<std::string> bytes;  // [n_tokens]

  std::vector<TokenId> encode(std::string_view text, std::span<const Fragment> fragments,
                              AddBos add_bos) const;
};

std::vector<TokenId> Tokenizer::Impl::encode(std::string_view text,
                                             std::span<const Fragment> fragments,
                                             AddBos add_bos) const {
  std::vector<TokenId> out;
  out.reserve(text.size() / 4 + 1);
  if (add_bos == AddBos::kAsModelSays && plain.adds_bos()) out.push_back(vocab.bos);
  PlainTextEncoder encoder(plain);
  for (const Fragment& fragment : fragments) {
    if (fragment.token.exists()) {
      out.push_back(fragment.token);
    } else {
      const TextRange& range = fragment.range;
      encoder.encode(text.substr(range.begin, range.end - range.begin), out);
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
  const Status supported = check_model(vocab);
  if (!supported) return fail(supported.error());
  if (vocab.tokens.empty()) return fail("tokenizer: the vocabulary is empty");
  Result<TokenIds> ids = index_tokens(vocab);
  if (!ids) return fail(ids.error());
  Result<TokenRoles> roles = make_roles(vocab, *ids);
  if (!roles) return fail(roles.error());
  Result<PlainText> plain = PlainText::make(vocab, *ids, *roles);
  if (!plain) return fail(plain.error());
  const Status added = check_added(vocab, *plain);
  if (!added) return fail(added.error());

  SpecialTokens specials = make_specials(vocab, *roles);
  std::vector<std::string> bytes;
  bytes.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    bytes.push_back(token_bytes(vocab.tokens[i], roles->kinds[i], plain->spelling()));
  }
  // Moving the vocabulary moves the vector of its tokens, not the strings that the views point to.
  return Tokenizer(
      std::unique_ptr<Impl>(new Impl{std::move(vocab), std::move(*ids), std::move(*roles),
                                     std::move(*plain), std::move(specials), std::move(bytes)}));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, Specials specials,
                                       AddBos add_bos) const {
  std::vector<TokenId> tokens =
      impl_->encode(text, impl_->specials.partition(text, specials, {}), add_bos);
  if (add_bos == AddBos::kAsModelSays && impl_->plain.adds_eos()) tokens.push_back(eos());
  return tokens;
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
  bool begins_stretch = true;
  for (const TokenId id : ids) {
    const TokenKind token_kind = kind(id);
    const bool is_escaped = std::string_view(impl_->vocab.tokens[static_cast<size_t>(id.value)])
                                .starts_with(kEscapedSpace);
    if (!is_hidden(token_kind)) {
      const bool has_added_space = begins_stretch && is_escaped && impl_->plain.adds_space();
      text += bytes(id).substr(has_added_space ? 1 : 0);
    }
    begins_stretch =
        is_hidden(token_kind) || (token_kind == TokenKind::kUserDefined && !is_escaped);
  }
  return text;
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(impl_->vocab.tokens.size()); }
TokenId Tokenizer::bos() const { return impl_->vocab.bos; }
TokenId Tokenizer::eos() const { return impl_->vocab.eos; }
bool Tokenizer::adds_bos() const { return impl_->plain.adds_bos(); }

bool Tokenizer::ends_generation(TokenId id) const {
  check(id.exists() && id.value < size(), "a token id outside the vocabulary");
  return impl_->roles.ends_generation[static_cast<size_t>(id.value)];
}

TokenId Tokenizer::find(std::string_view text) const {
  const auto id = impl_->ids.find(text);
  return id == impl_->ids.end() ? kNoToken : TokenId{id->second};
}

}  // namespace godwit::tokenizer
