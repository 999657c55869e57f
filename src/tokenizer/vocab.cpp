#include "tokenizer/vocab.h"

#include <array>
#include <limits>
#include <string_view>

namespace godwit::tokenizer {
namespace {

struct Unsupported {
  std::string_view model;  // tokenizer.ggml.model
  std::string_view words;
};
constexpr auto kUnsupported = std::to_array<Unsupported>({
    {"bert", "WordPiece, of encoder models such as BERT"},
    {"t5", "Unigram, of T5 and XLM-RoBERTa"},
    {"rwkv", "the greedy trie of RWKV"},
    {"plamo2", "the tokenizer of PLaMo-2"},
    {"hybriddna", "byte-level BPE mixed with k-mers of DNA"},
    {"whitespace", "white-space BPE, of encoder models"},
    {"none", "no vocabulary at all"},
    {"no_vocab", "no vocabulary at all"},
});

Result<std::string> text_or_empty(const gguf::File& file, std::string_view key) {
  const auto text = file.get_string(key);
  if (!text) return fail(text.error());
  return std::string(text->value_or(std::string_view{}));
}

Result<std::vector<std::string>> strings(const gguf::File& file, std::string_view key) {
  if (file.find(key) == nullptr) return fail("tokenizer: the model file has no '{}'", key);
  const auto list = file.get_strings(key);
  if (!list) return fail(list.error());
  return **list;
}

Result<TokenId> id_or_none(const gguf::File& file, std::string_view key) {
  const auto id = file.get_uint(key);
  if (!id) return fail(id.error());
  // 2^32 - 1 is how a writer with a signed -1 says that there is none.
  if (!id->has_value() || **id == std::numeric_limits<uint32_t>::max()) return kNoToken;
  if (**id > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    return fail("tokenizer: '{}' is {}, which is no token id", key, **id);
  }
  return TokenId{static_cast<int32_t>(**id)};
}

// Reads the ids that the file names; nothing is guessed for those it does not.
Status read_special_ids(const gguf::File& file, Vocab& vocab) {
  struct Row {
    std::string_view key;
    TokenId* id;
  };
  const Row rows[] = {
      {"tokenizer.ggml.bos_token_id", &vocab.bos},
      {"tokenizer.ggml.eos_token_id", &vocab.eos},
      {"tokenizer.ggml.eot_token_id", &vocab.eot},
      {"tokenizer.ggml.eom_token_id", &vocab.eom},
      {"tokenizer.ggml.unknown_token_id", &vocab.unknown},
      // Old names first: where a file has both, the newer counts.
      {"tokenizer.ggml.prefix_token_id", &vocab.fim_pre},
      {"tokenizer.ggml.suffix_token_id", &vocab.fim_suf},
      {"tokenizer.ggml.middle_token_id", &vocab.fim_mid},
      {"tokenizer.ggml.fim_pre_token_id", &vocab.fim_pre},
      {"tokenizer.ggml.fim_suf_token_id", &vocab.fim_suf},
      {"tokenizer.ggml.fim_mid_token_id", &vocab.fim_mid},
      {"tokenizer.ggml.fim_pad_token_id", &vocab.fim_pad},
      {"tokenizer.ggml.fim_rep_token_id", &vocab.fim_rep},
      {"tokenizer.ggml.fim_sep_token_id", &vocab.fim_sep},
  };
  for (const Row& row : rows) {
    const Result<TokenId> id = id_or_none(file, row.key);
    if (!id) return fail(id.error());
    if (id->exists()) *row.id = *id;
  }
  return {};
}

Status read_flags(const gguf::File& file, Vocab& vocab) {
  struct Row {
    std::string_view key;
    std::optional<bool>* flag;
  };
  const Row rows[] = {{"tokenizer.ggml.add_bos_token", &vocab.add_bos},
                      {"tokenizer.ggml.add_eos_token", &vocab.add_eos},
                      {"tokenizer.ggml.add_space_prefix", &vocab.add_space_prefix}};
  for (const Row& row : rows) {
    const auto flag = file.get_bool(row.key);
    if (!flag) return fail(flag.error());
    *row.flag = *flag;
  }
  return {};
}

// What merging needs.
Status read_merging(const gguf::File& file, Vocab& vocab) {
  if (vocab.model == kSentencePieceModel) {
    constexpr std::string_view kKey = "tokenizer.ggml.scores";
    auto scores = file.get_doubles(kKey);
    if (!scores) return fail(scores.error());
    if (!scores->has_value()) return fail("tokenizer: the model file has no '{}'", kKey);
    vocab.scores = std::move(**scores);
    return {};
  }
  auto merges = strings(file, "tokenizer.ggml.merges");
  if (!merges) return fail(merges.error());
  vocab.merges = std::move(*merges);
  return {};
}

// The ids that SentencePiece gives by default count where the file names none, as in llama.cpp.
void add_default_ids(Vocab& vocab) {
  if (vocab.model != kSentencePieceModel || vocab.tokens.size() < 3) return;
  if (!vocab.unknown.exists()) vocab.unknown = {0};
  if (!vocab.bos.exists()) vocab.bos = {1};
  if (!vocab.eos.exists()) vocab.eos = {2};
}

}  // namespace

Status check_model(const Vocab& vocab) {
  for (const std::string_view model : {"gpt2", "llama", "gemma4"}) {
    if (vocab.model == model) return {};
  }
  std::string_view words = "unknown";
  for (const Unsupported& row : kUnsupported) {
    if (row.model == vocab.model) words = row.words;
  }
  return fail(
      "tokenizer: tokenizer.ggml.model is '{}' ({}), which is not supported; supported: "
      "gpt2 (byte-level BPE), llama (SentencePiece BPE), gemma4 (BPE with escaped spaces)",
      vocab.model, words);
}

Result<Vocab> read_vocab(const gguf::File& file) {
  Vocab vocab;
  const auto model = file.need_string("tokenizer.ggml.model");
  if (!model) return fail(model.error());
  vocab.model = std::string(*model);
  const Status supported = check_model(vocab);
  if (!supported) return fail(supported.error());
  auto name = text_or_empty(file, "general.name");
  if (!name) return fail(name.error());
  vocab.name = std::move(*name);
  auto pre = text_or_empty(file, "tokenizer.ggml.pre");
  if (!pre) return fail(pre.error());
  vocab.pre = std::move(*pre);
  auto tokens = strings(file, "tokenizer.ggml.tokens");
  if (!tokens) return fail(tokens.error());
  vocab.tokens = std::move(*tokens);
  const Status merging = read_merging(file, vocab);
  if (!merging) return fail(merging.error());
  auto types = file.get_ints("tokenizer.ggml.token_type");
  if (!types) return fail(types.error());
  if (types->has_value()) vocab.types = std::move(**types);
  const Status flags = read_flags(file, vocab);
  if (!flags) return fail(flags.error());
  const Status ids = read_special_ids(file, vocab);
  if (!ids) return fail(ids.error());
  add_default_ids(vocab);
  return vocab;
}

}  // namespace godwit::tokenizer
