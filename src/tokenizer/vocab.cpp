#include "tokenizer/vocab.h"

#include <limits>
#include <string_view>

namespace godwit::tokenizer {
namespace {

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

}  // namespace

Result<Vocab> read_vocab(const gguf::File& file) {
  Vocab vocab;
  const auto model = file.need_string("tokenizer.ggml.model");
  if (!model) return fail(model.error());
  vocab.model = std::string(*model);
  auto pre = text_or_empty(file, "tokenizer.ggml.pre");
  if (!pre) return fail(pre.error());
  vocab.pre = std::move(*pre);
  auto tokens = strings(file, "tokenizer.ggml.tokens");
  if (!tokens) return fail(tokens.error());
  vocab.tokens = std::move(*tokens);
  // A vocabulary of another kind has no merges; that it is of another kind is the better message.
  if (vocab.model == "gpt2") {
    auto merges = strings(file, "tokenizer.ggml.merges");
    if (!merges) return fail(merges.error());
    vocab.merges = std::move(*merges);
  }
  auto types = file.get_ints("tokenizer.ggml.token_type");
  if (!types) return fail(types.error());
  if (types->has_value()) vocab.types = std::move(**types);
  const auto add_bos = file.get_bool("tokenizer.ggml.add_bos_token");
  if (!add_bos) return fail(add_bos.error());
  vocab.add_bos = *add_bos;
  const Status ids = read_special_ids(file, vocab);
  if (!ids) return fail(ids.error());
  return vocab;
}

}  // namespace godwit::tokenizer
