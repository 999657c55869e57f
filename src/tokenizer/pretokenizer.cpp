#include "tokenizer/pretokenizer.h"

#include <array>
#include <span>
#include <utility>

#include "tokenizer/pattern.h"
#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

// The patterns as the models' tokenizer.json files publish them (pre_tokenizer), with the case
// folding of contractions limited to ASCII, as llama.cpp does (llama-vocab.cpp, llm_tokenizer_bpe).
// A pre-tokenizer of several patterns applies them in turn, each to the pieces of the one before.
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Words =
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Words =
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Words =
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr auto kGpt2 = std::to_array<std::string_view>({kGpt2Words});
constexpr auto kSmollm = std::to_array<std::string_view>({R"(\p{N})", kGpt2Words});
constexpr auto kQwen2 = std::to_array<std::string_view>({kQwen2Words});
constexpr auto kQwen35 = std::to_array<std::string_view>({kQwen35Words});
constexpr auto kLlama3 = std::to_array<std::string_view>({kLlama3Words});
// What llama.cpp does for files from before tokenizer.ggml.pre existed.
constexpr auto kDefault = std::to_array<std::string_view>(
    {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", R"([0-9][0-9][0-9])"});

enum class WholeWords { kByMerges, kFirst };
enum class Bos { kNotAdded, kAdded };

struct Row {
  std::string_view name;
  std::span<const std::string_view> patterns;
  WholeWords whole_words = WholeWords::kByMerges;
  Bos bos = Bos::kNotAdded;
};

// Names that llama.cpp treats alike share their patterns here too.
constexpr auto kRows = std::to_array<Row>({
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"exaone4", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"trillion", kGpt2},
    {"granite-docling", kGpt2},
    {"smollm", kSmollm},
    {"starcoder", kSmollm},
    {"refact", kSmollm},
    {"command-r", kSmollm},
    {"codeshell", kSmollm},
    {"exaone", kSmollm},
    {"minerva-7b", kSmollm},
    {"qwen2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"megrez", kQwen2},
    {"stablelm2", kQwen2},
    {"hunyuan", kQwen2},
    {"qwen35", kQwen35},
    {"llama-bpe", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"llama-v3", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"llama3", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"falcon3", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"falcon-h1", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"pixtral", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"midm-2.0", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"lfm2", kLlama3, WholeWords::kFirst, Bos::kAdded},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
});

const Row* find_row(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == (name.empty() ? "default" : name)) return &row;
  }
  return nullptr;
}

// A copy in which every byte outside valid UTF-8 is U+0001: a character of one byte that is neither
// letter, number, punctuation nor white space, as U+FFFD is none, so that places stay the same.
std::string with_bad_bytes_masked(std::string_view text) {
  std::string masked(text);
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (step.kind != Utf8Kind::kCharacter) masked.replace(at, step.bytes, step.bytes, '\x01');
    at += step.bytes;
  }
  return masked;
}

}  // namespace

struct PreTokenizer::Impl {
  std::vector<Pattern> patterns;
  WholeWords whole_words;
  Bos bos;
};

PreTokenizer::PreTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::make(std::string_view name) {
  const Row* row = find_row(name);
  if (row == nullptr) {
    return fail(
        "tokenizer: pre-tokenizer '{}' is not supported (tokenizer.ggml.pre); supported: {}", name,
        supported_pretokenizers());
  }
  auto impl = std::make_unique<Impl>();
  for (const std::string_view regex : row->patterns) impl->patterns.emplace_back(regex);
  impl->whole_words = row->whole_words;
  impl->bos = row->bos;
  return PreTokenizer(std::move(impl));
}

std::vector<TextRange> PreTokenizer::split(std::string_view text) const {
  if (text.empty()) return {};
  const std::string masked = with_bad_bytes_masked(text);
  std::vector<TextRange> pieces{{0, masked.size()}};
  for (const Pattern& pattern : impl_->patterns) pieces = pattern.cut(masked, pieces);
  return pieces;
}

bool PreTokenizer::whole_words_first() const { return impl_->whole_words == WholeWords::kFirst; }
bool PreTokenizer::adds_bos() const { return impl_->bos == Bos::kAdded; }

std::string supported_pretokenizers() {
  std::string names;
  for (const Row& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace godwit::tokenizer
