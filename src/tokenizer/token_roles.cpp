#include "tokenizer/token_roles.h"

#include <array>
#include <span>
#include <string_view>

namespace godwit::tokenizer {
namespace {

// Texts that end a turn or an answer. They are control tokens even where the file says otherwise.
constexpr auto kEndTexts =
    std::to_array<std::string_view>({"<|eot_id|>",
                                     "<|im_end|>",
                                     "<|end|>",
                                     "<|return|>",
                                     "<|call|>",
                                     "<|flush|>",
                                     "<|calls|>",
                                     "<end_of_turn>",
                                     "<|endoftext|>",
                                     "</s>",
                                     "<|eom_id|>",
                                     "<EOT>",
                                     "_<EOT>",
                                     "[EOT]",
                                     "[EOS]",
                                     "<|end_of_text|>",
                                     "<end_of_utterance>",
                                     "<eos>",
                                     "<turn|>",
                                     "<|tool_response>",
                                     "<\xEF\xBD\x9C"
                                     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
                                     "[e~["});

// Marks of fill-in-the-middle prompts; in each list the first that the vocabulary has counts.
// Found so, by their texts, they are control tokens whatever the file says.
constexpr auto kFimPrefix = std::to_array<std::string_view>(
    {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<PRE>", "\xE2\x96\x81<PRE>", "<|code_prefix|>", "<|prefix|>"});
constexpr auto kFimSuffix = std::to_array<std::string_view>(
    {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "hole\xEF\xBD\x9C>",
     "<SUF>", "\xE2\x96\x81<SUF>", "<|code_suffix|>", "<|suffix|>"});
constexpr auto kFimMiddle = std::to_array<std::string_view>(
    {"<|fim_middle|>", "<fim-middle>", "<fim_middle>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     "<MID>", "\xE2\x96\x81<MID>", "<|code_middle|>", "<|middle|>"});
// A model that writes one of these has run past the end of what was asked of it.
constexpr auto kFimPad =
    std::to_array<std::string_view>({"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"});
constexpr auto kFimRepository = std::to_array<std::string_view>(
    {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"});
constexpr auto kFimFile = std::to_array<std::string_view>({"<|file_sep|>"});

TokenKind kind_of(int64_t type) {
  switch (type) {
    case 1:
      return TokenKind::kNormal;
    case 2:
      return TokenKind::kUnknown;
    case 3:
      return TokenKind::kControl;
    case 4:
      return TokenKind::kUserDefined;
    case 6:
      return TokenKind::kByte;
    // 5, the undefined 0, and what a later version of the format may add: never produced by text.
    default:
      return TokenKind::kUnused;
  }
}

size_t index(TokenId id) { return static_cast<size_t>(id.value); }

TokenId find(const TokenIds& ids, std::string_view text) {
  const auto id = ids.find(text);
  return id == ids.end() ? kNoToken : TokenId{id->second};
}

TokenId find_first(const TokenIds& ids, std::span<const std::string_view> texts) {
  for (const std::string_view text : texts) {
    const TokenId id = find(ids, text);
    if (id.exists()) return id;
  }
  return kNoToken;
}

Status check_id(const Vocab& vocab, std::string_view name, TokenId id) {
  if (!id.exists() || index(id) < vocab.tokens.size()) return {};
  return fail("tokenizer: the {} token is {}, but the vocabulary has {} tokens", name, id.value,
              vocab.tokens.size());
}

Status check_ids(const Vocab& vocab) {
  struct Row {
    std::string_view name;
    TokenId id;
  };
  const Row rows[] = {{"bos", vocab.bos},         {"eos", vocab.eos},
                      {"eot", vocab.eot},         {"eom", vocab.eom},
                      {"fim_pre", vocab.fim_pre}, {"fim_suf", vocab.fim_suf},
                      {"fim_mid", vocab.fim_mid}, {"fim_pad", vocab.fim_pad},
                      {"fim_rep", vocab.fim_rep}, {"fim_sep", vocab.fim_sep}};
  for (const Row& row : rows) {
    const Status good = check_id(vocab, row.name, row.id);
    if (!good) return good;
  }
  return {};
}

// In OpenAI's harmony format the marks between a message's parts are for the reader to see.
void show_message_parts(const TokenIds& ids, TokenRoles& roles) {
  if (!find(ids, "<|channel|>").exists() || !find(ids, "<|message|>").exists()) return;
  for (const std::string_view text : {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}) {
    const TokenId id = find(ids, text);
    if (id.exists()) roles.kinds[index(id)] = TokenKind::kUserDefined;
  }
}

// Gemma 4's </s> is the HTML tag, an ordinary word.
void spare_strikethrough(const TokenIds& ids, TokenRoles& roles) {
  const TokenId id = find(ids, "</s>");
  if (!id.exists() || !find(ids, "<|tool_response>").exists()) return;
  roles.ends_generation[index(id)] = false;
  roles.kinds[index(id)] = TokenKind::kNormal;
}

// In OpenAI's harmony format and in Solar's, <|end|> ends a message but not the answer.
void spare_message_ends(const TokenIds& ids, TokenRoles& roles) {
  const auto has = [&](std::string_view text) { return find(ids, text).exists(); };
  const bool has_call = has("<|call|>") || has("<|calls|>");
  const TokenId end = find(ids, "<|end|>");
  if (!end.exists() || !has_call || !(has("<|return|>") || has("<|flush|>"))) return;
  roles.ends_generation[index(end)] = false;
  roles.kinds[index(end)] = TokenKind::kUserDefined;
}

}  // namespace

Result<TokenRoles> make_roles(const Vocab& vocab, const TokenIds& ids) {
  const size_t n = vocab.tokens.size();
  if (!vocab.types.empty() && vocab.types.size() != n) {
    return fail("tokenizer: {} token types for {} tokens", vocab.types.size(), n);
  }
  const Status ids_are_good = check_ids(vocab);
  if (!ids_are_good) return fail(ids_are_good.error());
  TokenRoles roles{std::vector<TokenKind>(n, TokenKind::kNormal), std::vector<bool>(n)};
  for (size_t i = 0; i < vocab.types.size(); ++i) roles.kinds[i] = kind_of(vocab.types[i]);

  const auto make_control = [&](TokenId id) {
    if (id.exists()) roles.kinds[index(id)] = TokenKind::kControl;
  };
  const auto make_end = [&](TokenId id) {
    if (id.exists()) roles.ends_generation[index(id)] = true;
  };
  for (const std::string_view text : kEndTexts) {
    make_control(find(ids, text));
    make_end(find(ids, text));
  }
  // An id that the file names stands; only a missing one is looked for by its text.
  const auto find_fim = [&](TokenId named, std::span<const std::string_view> texts) {
    if (named.exists()) return named;
    const TokenId id = find_first(ids, texts);
    make_control(id);
    return id;
  };
  find_fim(vocab.fim_pre, kFimPrefix);
  find_fim(vocab.fim_suf, kFimSuffix);
  find_fim(vocab.fim_mid, kFimMiddle);
  make_end(find_fim(vocab.fim_pad, kFimPad));
  make_end(find_fim(vocab.fim_rep, kFimRepository));
  make_end(find_fim(vocab.fim_sep, kFimFile));
  show_message_parts(ids, roles);
  for (const TokenId id : {vocab.eos, vocab.eot, vocab.eom}) make_end(id);
  spare_message_ends(ids, roles);
  spare_strikethrough(ids, roles);
  return roles;
}

}  // namespace godwit::tokenizer
