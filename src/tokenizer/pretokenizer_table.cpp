#include "tokenizer/pretokenizer_table.h"

#include <algorithm>
#include <array>

namespace godwit::tokenizer {
namespace {

// The patterns as the models' tokenizer.json files publish them (pre_tokenizer), with the case
// folding of contractions limited to ASCII, as llama.cpp does. Where llama.cpp only approximates a
// published pattern (llama-vocab.cpp, llm_tokenizer_bpe: std::regex knows no Unicode classes) the
// published one stands here; docs/TOKENIZERS.md names the differences.
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Words =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kJais2Words =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S))"
    R"(|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";
constexpr std::string_view kQwen2Words =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Words =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMinicpm5Words =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kUfakzekaWords =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBailingWords =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoderWords =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoeWords =
    R"('(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))"
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
// Words end where lower case turns to upper; a contraction stays with its word.
constexpr std::string_view kGpt4oWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutuWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The published pattern with its class intersections (&&[^\p{Han}]) written as lookaheads.
constexpr std::string_view kKimiWords =
    R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:'(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:'(?:[sdmtSDMT]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepseekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSparkWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";

constexpr std::string_view kDeepseekLetters =
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
    R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
    R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4})"
    R"(\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124})"
    R"(\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
    R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
    R"(\x{1e900}-\x{1e943}]+)";
constexpr std::string_view kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
constexpr std::string_view kCjkRun = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr std::string_view kHanKana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kPoroWords =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";
constexpr std::string_view kYoutuScripts =
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019})"
    R"(\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}])"
    R"(+|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kAfmoeScripts =
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff})"
    R"(\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff})"
    R"(\x{1000}-\x{109f}\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)";

constexpr std::string_view kLines = R"([^\n]+|\n+)";
constexpr std::string_view kNumbers = R"(\p{N}++)";
constexpr std::string_view kUpToThreeNumbers = R"(\p{N}{1,3})";
// Groups of three from the right, in pieces that are numbers from end to end; \G holds on to the
// group before, so that none is looked at twice.
constexpr std::string_view kNumberGroups = R"(\A\p{N}{1,3}(?=(?:\p{N}{3})*+\z)|(?!\A)\G\p{N}{3})";
constexpr std::string_view kDigitGroups = R"(\A\d{1,3}(?=(?:\d{3})*+\z)|(?!\A)\G\d{3})";
// From each place that a multiple of three digits follows to the next: three digits that end or go
// on a run, then what is no digit and the one or two digits that begin a run.
constexpr std::string_view kDigitCuts = R"((?:(?<=\d)\d{3}|(?<!\d)\d{3}(?=(?:\d{3})*+(?!\d)))?)"
                                        R"((?:[^\d]++|(?<!\d)\d{1,2}(?=(?:\d{3})*+(?!\d)))*+)";

using Pattern = std::string_view;
constexpr auto kDefault = std::to_array<Pattern>(
    {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", R"([0-9][0-9][0-9])"});
constexpr auto kGpt2 = std::to_array<Pattern>({kGpt2Words});
constexpr auto kSmollm = std::to_array<Pattern>({R"(\p{N})", kGpt2Words});
constexpr auto kQwen2 = std::to_array<Pattern>({kQwen2Words});
constexpr auto kQwen35 = std::to_array<Pattern>({kQwen35Words});
constexpr auto kLlama3 = std::to_array<Pattern>({kLlama3Words});
constexpr auto kJais2 = std::to_array<Pattern>({kJais2Words});
constexpr auto kMinicpm5 = std::to_array<Pattern>({kUpToThreeNumbers, kMinicpm5Words});
constexpr auto kUfakzeka = std::to_array<Pattern>({kUfakzekaWords});
constexpr auto kBailing = std::to_array<Pattern>({kBailingWords});
constexpr auto kSeedCoder = std::to_array<Pattern>({kSeedCoderWords});
constexpr auto kExaoneMoe = std::to_array<Pattern>({kExaoneMoeWords});
constexpr auto kGpt4o = std::to_array<Pattern>({kGpt4oWords});
constexpr auto kTekken = std::to_array<Pattern>({kTekkenWords});
constexpr auto kYoutu = std::to_array<Pattern>({kYoutuScripts, kYoutuWords});
constexpr auto kKimi = std::to_array<Pattern>({kKimiWords});
constexpr auto kDeepseekLlm = std::to_array<Pattern>(
    {R"([\r\n])", kDeepseekLetters, kDeepseekPunctuation, R"(\s+\z)", kCjkRun, R"(\p{N}+)"});
constexpr auto kDeepseekCoder =
    std::to_array<Pattern>({R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjkRun, R"(\p{N})"});
constexpr auto kDeepseekV3 =
    std::to_array<Pattern>({kUpToThreeNumbers, kHanKana, kDeepseekV3Words});
constexpr auto kSpark =
    std::to_array<Pattern>({kUpToThreeNumbers, kHanKana, kSparkWords, R"(\p{N})"});
constexpr auto kFalcon =
    std::to_array<Pattern>({R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words, R"([0-9][0-9][0-9])"});
constexpr auto kPoro = std::to_array<Pattern>({kPoroWords});
constexpr auto kViking = std::to_array<Pattern>({kPoroWords, R"(\p{N})"});
constexpr auto kChameleon =
    std::to_array<Pattern>({R"(<sentinel:[0-9]+>)", R"(IMGIMG[A-I]{1,4}Z)", R"([\t\n]|    |  )",
                            R"(\p{N})", R"([\p{P}!-/:-@\[-`{-~])", kGpt2Words});
// The published pattern (digits in threes from the right where the run ends at a word's border),
// in two steps.
constexpr auto kTinyAya = std::to_array<Pattern>({R"((?<!\d)\d++\b)", kDigitGroups, kGpt4oWords});
constexpr auto kSuperbpe = std::to_array<Pattern>({kNumbers, kDigitCuts});
constexpr auto kAfmoe =
    std::to_array<Pattern>({kNumbers, kNumberGroups, kAfmoeScripts, kDeepseekV3Words});
constexpr auto kLaguna = std::to_array<Pattern>({kLines, kQwen2Words});
constexpr auto kWholeLines = std::to_array<Pattern>({kLines});

constexpr auto kRows = std::to_array<PreTokenizerRow>({
    // What llama.cpp does for files from before tokenizer.ggml.pre existed.
    {"default", kDefault},
    {"gpt-2 phi-2 exaone4 mpt olmo jais trillion granite-docling jina-es jina-de jina-v1-en "
     "jina-v2-es jina-v2-de jina-v2-code roberta-bpe gigachat a.x-4.0 mellum modern-bert",
     kGpt2},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", kSmollm},
    {"qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan solar-open kormo f2llmv2 grok-2", kQwen2},
    {"qwen35", kQwen35},
    {"llama-bpe llama-v3 llama3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", kLlama3,
     WholeWords::kAlways, AddsBos::kUnlessFileForbids},
    {"dbrx smaug-bpe chatglm-bpe", kLlama3},
    {"glm4 glm5", kLlama3, WholeWords::kAlways},
    {"jais-2", kJais2},
    {"minicpm5", kMinicpm5, WholeWords::kAlways},
    {"ufakzeka", kUfakzeka},
    {"bailingmoe bailingmoe2 llada-moe", kBailing},
    {"seed-coder", kSeedCoder},
    {"exaone-moe", kExaoneMoe},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", kGpt4o},
    {"granite-embed-multi-97m", kGpt4o, WholeWords::kAlways},
    {"tekken", kTekken, WholeWords::kAlways, AddsBos::kUnlessFileForbids},
    {"youtu", kYoutu, WholeWords::kAlways},
    {"kimi-k2", kKimi},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-coder", kDeepseekCoder},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", kDeepseekV3},
    {"spark2_5", kSpark},
    {"falcon", kFalcon},
    {"poro-chat bloom gpt3-finnish", kPoro},
    {"viking", kViking},
    {"chameleon", kChameleon, WholeWords::kNever, AddsBos::kUnlessFileForbids},
    {"tiny_aya cohere2moe", kTinyAya},
    {"superbpe", kSuperbpe},
    {"afmoe", kAfmoe},
    {"laguna", kLaguna},
    {"gemma4 granite-embed-multi-311m", kWholeLines, WholeWords::kNewlineRuns, AddsBos::kAlways,
     Spelling::kEscapedSpaces},
    {"sarvam-moe", kWholeLines, WholeWords::kNever, AddsBos::kIfFileSays, Spelling::kEscapedSpaces},
});

bool has_name(const PreTokenizerRow& row, std::string_view name) {
  std::string_view rest = row.names;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::span<const PreTokenizerRow> pretokenizer_rows() { return kRows; }

const PreTokenizerRow* find_pretokenizer(std::string_view name) {
  for (const PreTokenizerRow& row : kRows) {
    if (has_name(row, name)) return &row;
  }
  return nullptr;
}

}  // namespace godwit::tokenizer
