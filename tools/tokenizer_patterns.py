"""The pre-tokenizers as the models' tokenizer.json files publish them, for the `tokenizers` package:
the witness of tests/fixtures/tokenizer/words.json. Where a model publishes none (its files only
name it), the expression that llama.cpp uses."""
from tokenizers import Regex, pre_tokenizers

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{SYMBOLS}|{SPACES}"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
          rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}")
HALVES = "".join(rf"|\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4, "1,2"))
JAIS2 = LLAMA3.replace(r"|\s+(?!\S)|\s+", HALVES + r"|\s{1}")
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def cased(upper, lower, contraction, numbers, symbols):
    before = r"[^\r\n\p{L}\p{N}]?"
    return (f"{before}{upper}*{lower}+{contraction}|{before}{upper}+{lower}*{contraction}"
            f"|{numbers}|{symbols}|{SPACES}")


SYMBOLS_AND_SLASHES = SYMBOLS.replace(r"[\r\n]*", r"[\r\n/]*")
GPT4O = cased(f"[{UPPER}]", f"[{LOWER}]", CONTRACTION + "?", r"\p{N}{1,3}", SYMBOLS_AND_SLASHES)
TEKKEN = cased(f"[{UPPER}]", f"[{LOWER}]", "", r"\p{N}", SYMBOLS_AND_SLASHES)
YOUTU = cased(f"[{UPPER}]", f"[{LOWER}]", CONTRACTION + "?", r"\p{N}", SYMBOLS_AND_SLASHES)
KIMI = r"\p{Han}+|" + cased(rf"[{UPPER}&&[^\p{{Han}}]]", rf"[{LOWER}&&[^\p{{Han}}]]",
                           CONTRACTION + "?", r"\p{N}{1,3}", SYMBOLS)
DEEPSEEK_V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
               r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
               rf"|{SPACES}")
BAILING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
           r"|\s*[\r\n]|\s+(?!\S)|\s+")
SEED_CODER = rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{SPACES}"
EXAONE_MOE = (rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-"
    "\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18"
    "-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2"
    "-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-"
    "\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-"
    "\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-"
    "\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-"
    "\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-"
    "\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+")
DEEPSEEK_PUNCTUATION = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
CJK_RUN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
HAN_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
PORO = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
YOUTU_SCRIPTS = (
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b"
    "\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-"
    "\u30ff]+")
AFMOE_SCRIPTS = (
    "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-"
    "\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00"
    "-\ud7af\u1100-\u11ff]+")


def split(*regexes):
    steps = [pre_tokenizers.Split(Regex(regex), "isolated") for regex in regexes]
    return steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)


PRETOKENIZERS = {
    "gpt-2": split(GPT2),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split(GPT2)]),
    "qwen2": split(QWEN2),
    "qwen35": split(QWEN35),
    "llama-bpe": split(LLAMA3),
    "default": split(r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    "falcon": split(r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"),
    "jais-2": split(JAIS2),
    "minicpm5": split(r"\p{N}{1,3}", LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+")),
    "ufakzeka": split(QWEN2.removeprefix(CONTRACTION + "|")),
    "gpt-4o": split(GPT4O),
    "tekken": split(TEKKEN),
    "youtu": split(YOUTU_SCRIPTS, YOUTU),
    "kimi-k2": split(KIMI),
    "deepseek-llm": split("[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_PUNCTUATION, r"\s+$", CJK_RUN, r"\p{N}+"),
    "deepseek-coder": split("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_RUN, r"\p{N}"),
    "deepseek-v3": split(r"\p{N}{1,3}", HAN_KANA, DEEPSEEK_V3),
    "spark2_5": split(r"\p{N}{1,3}", HAN_KANA,
                      DEEPSEEK_V3.replace(r"[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+", r"[\p{P}\p{S}]+|[\r\n]"),
                      r"\p{N}"),
    "poro-chat": split(PORO),
    "viking": split(PORO, r"\p{N}"),
    "chameleon": split("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )",
                       r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2),
    "bailingmoe": split(BAILING),
    "seed-coder": split(SEED_CODER),
    "exaone-moe": split(EXAONE_MOE),
    "tiny_aya": split(r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O),
    "superbpe": split(r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "afmoe": split(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", AFMOE_SCRIPTS, DEEPSEEK_V3),
    "laguna": split(r"[^\n]+|[\n]+", QWEN2),
    "gemma4": split(r"[^\n]+|[\n]+"),
}
