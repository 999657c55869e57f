"""The strings on which tokenizers are compared: each is there because some tokenizer once got its
like wrong. Deterministic; the order is part of the fixtures, so add at the end of a group and make
the fixtures anew (tools/make_tokenizer_fixture.py)."""

import random

WORDS = [
    "", " ", "a", "Hello", " Hello", "Hello world", "Hello, world!", " leading", "trailing ",
    "The quick brown fox jumps over the lazy dog.", "UPPER lower MiXeD camelCase snake_case",
    "don't", "DON'T", "Don'T won't WON'T", "I'm I'M i'm", "we'll WE'LL We'Ll", "they've THEY'VE",
    "you're YOU'RE", "he'd HE'D", "it's IT'S it'S", "'s 't 're 've 'm 'll 'd", "'S 'T 'RE 'VE 'M 'LL 'D",
    "'sa 'tb 'x 'lla", "''s", "' s", "rock'n'roll", "o'clock's", "\u2019s don\u2019t", "a'", "'", "''''",
    "x.y.z", "e.g., i.e.", "Mr. Smith's", "well-known", "re-re-re", "(parenthesised)", "[a]{b}<c>",
    "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaftskapit\u00e4n",
]

NUMBERS = [
    "0", "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678901234567890",
    " 1", " 12", " 123", "  123", "1 2 3", "3.14159", "1,234,567.89", "-42", "+42", "1e-10", "0x1F",
    "a1b2c3", "1a2b3c", "x123y", "2024-11-30T14:12:47Z", "50%", "$100", "\u00a35.00", "\u20ac1\u00a0000",
    "\u0661\u0662\u0663\u0664", "\u0967\u0968\u0969", "\u00b2\u00b3\u00b9", "\u00bd \u00be \u215c", "\u2160\u2161\u2162\u2163", "\u2460\u2461\u2462",
    "\uff11\uff12\uff13", "\U0001d7ce\U0001d7cf\U0001d7d0", "\u4e00\u4e8c\u4e09", "1\u0301 2\u20e3", "H2O CO2", "v1.2.3-rc4",
    "1st 2nd 3rd", "007", "1_000_000", "9" * 50, "12 " * 20,
]

SPACES = [
    "  ", "   ", "    ", "        ", " " * 17, " " * 63, " " * 256, "a b", "a  b", "a   b", "a    b",
    "a b  c   d    e", "  a", "   a", "a  ", "a   ", "\t", "\t\t", "\t\t\t", "a\tb", "a\t\tb", "\ta", "a\t", " \t ",
    "\t \t", "\t a", " \ta", "a \t b", "\n", "\n\n", "\n\n\n", "\n\n\n\n", "a\nb", "a\n\nb", "a\n\n\nb", "a\n", "\na",
    "\n a", " \na", " \n a", "a \n b", "a \n\n b", "a  \n  \n  b", "\n  \n", "  \n  ", "\r", "\r\n", "\r\n\r\n", "a\rb",
    "a\r\nb", "a\r\n\r\nb", "\n\r", "a\n\rb", "a \r\n b", "\r\n  x", "\n\n\t\tx", "x\n\n\t\t", "!\n", "!\r\n", "! \n",
    "!\n\nx", "!!!\n\n\n", " !\n", "  !", "a !", ".\n\n\n  .", "1\n2\n3", "1 \n 2", "\x0b", "\x0c", "a\x0bb", "a\x0cb",
    "a \x0b\x0c b", "\u0085", "a\u0085b", "\u00a0", "\u00a0\u00a0", "a\u00a0b", "a\u00a0\u00a0b", " \u00a0", "\u00a0 a", "\u00a0a", "\u1680x",
    "\u2000\u2001\u2002x", "a\u2003b", "\u2028", "a\u2028b", "\u2029", "a\u2029\nb", "\u202fx", "\u205fx", "\u3000", "\u3000x", "a\u3000\u3000b",
    "\u180e", "a\u180eb", "  \u180e  ", "\u200b", "a\u200bb", " \u200b ", "\u200c\u200d", "\u2060", "\ufeff", "\ufeffa", "a\ufeff", "\u00ad",
    "co\u00adoperate", "    if x:\n        return\n", "\tif x:\n\t\treturn\n", "x" + " " * 40 + "y", "x" + "\n" * 40 + "y",
    "x" + "\t" * 40 + "y", " \n" * 20, "\n " * 20, " " * 40 + "\n" + " " * 40 + "z",
]

CONTROLS = [
    "\x00", "a\x00b", "\x00\x00", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "\x80", "\x81\x9f", "a\x08b", "\ufffd",
    "a\ufffdb", "\ufffe", "\uffff", "\U0010ffff", "\ue000", "\U000f0000", "\U000e0001\U000e0041", "\u0378", "\U0001fbfa",
    " \x00 ", "!\x00!", "\x00\n\x00", "\u061c\u200e\u200f", "\u202a\u202b\u202c\u202d\u202e", "\ufff9\ufffa\ufffb", "\ufffc",
]

SCRIPTS = [
    "caf\u00e9", "cafe\u0301", "na\u00efve r\u00e9sum\u00e9", "\u00c5ngstr\u00f6m \u212bngstr\u00f6m", "stra\u00dfe STRASSE", "\u0130stanbul \u0131", "\u01c5 \u01c8 \u01cb",
    "\ufb01 \ufb02 \ufb03", "a\u0300\u0301\u0302\u0303", "\u0300", " \u0301", "e\u0301\u0301\u0301", "\u1e9b\u0323", "q\u0307\u0323", "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034d",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5", "\u0531\u0580\u0587", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0", "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u4f60\u597d \u4e16\u754c",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c", "\u30ab\u30bf\u30ab\u30ca\u30fc", "\uff76\uff80\uff76\uff85", "\uc548\ub155\ud558\uc138\uc694", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u65e5\u672c\u8a9e\u3068English\u306emix", "\U00020000\U0002a6d6",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u0633\u0644\u0627\u0645\u200c\u0647\u0627", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u09a8\u09ae\u09b8\u09cd\u0995\u09be\u09b0", "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd", "\u0c24\u0c46\u0c32\u0c41\u0c17\u0c41", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0e19\u0e49\u0e33", "\u1794\u1784\u17d2\u17a2\u17c2", "\u1019\u103c\u1014\u103a\u1019\u102c",
    "\u0f56\u0f7c\u0f51\u0f0b\u0f66\u0f90\u0f51\u0f0b", "\u1820\u180b\u1820", "\u13e3\u13b3\u13a9", "\u16a0\u16a2\u16a6", "\U00010330\U00010331", "\U00012000\U00012001", "\u2c00\u2c30", "Ti\u1ebfng Vi\u1ec7t c\u00f3 d\u1ea5u", "\u01ce\u01d0\u01d2 p\u012bny\u012bn",
    "\u02b0\u02b2\u02b7 \u1d2c", "\u2090\u2091", "\u00aa\u00ba", "\u00b5\u03bc", "\u2126\u03a9", "\U0001d400\U0001d401", "\u24b6\u24b7", "\uff21\uff22\uff43", "it\u00b4s it`s", "l\u2019\u00e9t\u00e9",
]

EMOJI = [
    "\U0001f600", "a\U0001f600b", " \U0001f600 ", "\U0001f600\U0001f601\U0001f602", "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\u2764\ufe0f", "\u2764", "1\ufe0f\u20e3", "\u263a\ufe0e", "\U0001f9d1\U0001f3ff\u200d\U0001f680", "\U0001fae0", "\U0001f600!\n", "\u2192 \u21d2 \u27a4", "\u2713\u2717", "\u2591\u2592\u2593\u2588",
    "\u250c\u2500\u2510\n\u2502x\u2502\n\u2514\u2500\u2518", "\u2211\u222b\u221a\u221e \u2260 \u2264", "\u00a9\u00ae\u2122", "\u20bf \u20b9 \u00a5", "\u2026\u2014\u2013\u2010", "\u00ab\u00bb\u201e\u201c\u201d\u201a\u2018\u2019", "\u00bf\u00a1", "\u3001\u3002\u300c\u300d", "\u00b7\u2022\u2023",
]

PUNCTUATION = [
    "!", "!!", "!!!", "?!?!", "...", "....", "-----", "=====", "#####", "*****", "_____", "~~~", "```", "``` ```", "'\"'\"",
    "!@#$%^&*()_+-=[]{}|;:,.<>?/~`", "a!b@c#d$e%f^g&h*", ". . .", " .", " ,x", "a,b", "a , b", "(((())))", "<<<>>>", "//", "///\n",
    "/* x */", "\\", "\\\\", "\\n", "\\u00e9", "&amp;", "&lt;&#39;", "%20%C3%A9", "$x$", "$$\\int_0^1 x^2\\,dx$$", "a=b", "a == b", "a!=b",
    "a->b", "a::b", "a|b||c", "^_^", ":-)", "<3", "@user #tag", "user@example.com", "https://example.com/a?b=c&d=e#f",
    "C:\\Users\\me", "/usr/local/bin", "--flag=value", "-x -y", "!?\r\n\r\n", "...\n...", " ...\n", "\u201cquoted\u201d\n", "a.\n\nb",
]

CODE = [
    "int main(void) {\n\treturn 0;\n}\n", "def f(x):\n    return x + 1\n\n\nclass A:\n    pass\n", "for (int i=0;i<10;++i){a[i]+=b[i];}",
    "std::vector<std::unique_ptr<Foo>> v{};", "#include <stdio.h>\n#define X(a) #a\n", "SELECT * FROM t WHERE a='b' AND c>=10;",
    "{\"a\": [1, 2.5, null, true], \"b\\n\": \"c\"}", "<html><body class=\"x\">&nbsp;</body></html>", "```python\nprint('hi')\n```",
    "| a | b |\n|---|---|\n| 1 | 2 |\n", "- item\n  - sub\n    - subsub\n1. one\n2. two\n", "x = y if z else w  # comment",
    "lambda x: x**2 if x%2==0 else x//2", "fn main() { println!(\"{:?}\", x?); }", "a\\\n  b", "if\t(x)\r\n{\r\n\ty();\r\n}\r\n",
    "git commit -m 'fix: don\\'t crash'", "\u03bb x. x", "r'\\d+(?!\\S)'", "0b1010 0o17 0xDEADBEEF 1_000", "@decorator\nasync def f(): ...",
]

SPECIALS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
    "a<|endoftext|>b", "a <|endoftext|> b", "<|endoftext|><|endoftext|>", " <|im_end|>", "<|im_end|> ", "<|im_end|>\n\n",
    "<|im_end", "|im_end|>", "<|im_end|", "<<|im_end|>>", "<|IM_END|>", "< |im_end|>", "<|im_\u200bend|>", "<|im_start|><|im_sta",
    "<|eot_id|>", "<|begin_of_text|>x<|end_of_text|>", "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>",
    "<|reserved_special_token_0|><|reserved_special_token_1|><|reserved_special_token_10|>", "<|python_tag|>", "<|eom_id|>",
    "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<|fim_pad|><|repo_name|><|file_sep|>", "<tool_call>\n{}\n</tool_call>",
    "<think>\nhm\n</think>", "<|object_ref_start|>x<|vision_pad|>", "<repo_name>a<reponame>b<file_sep>c<filename>", "<gh_stars><issue_start>",
    "<jupyter_code><jupyter_output><empty_output>", "<s></s><unk><pad>", "[INST] x [/INST]", "<bos><eos>", "<|end|><|user|>",
    "  <|im_start|>  x  <|im_end|>  ", "\u00e9<|im_end|>\u00e9", "123<|im_end|>456", "don<|im_end|>'t", "<|im_end|>'s", "a\n<|im_end|>\nb",
]

LONG = [
    "a" * 100, "a" * 333, "ab" * 200, "abc" * 99, "the " * 60, "A" * 77, "=" * 200, "." * 127, "-" * 128, "/" * 129, "xyz" * 33 + "!" * 33,
    "\u00e9" * 70, "\u4e2d" * 70, "\U0001f600" * 40, "\u0301" * 40, "1" * 100, "a1" * 60, "aA" * 60, "a " * 60, "a\n" * 60, "a\n\n" * 30, "\n" * 200,
    "\t" * 100, " a" * 60, "!a" * 60, "'s" * 50, "'" * 90, "pneumonoultramicroscopicsilicovolcanoconiosis" * 4,
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. " * 3,
]


def _random_strings(count, seed):
    """Mixtures, so that borders between classes of characters meet in every order."""
    rng = random.Random(seed)
    pool = (
        list("abcXYZ019 '.,!?-_/\\\"()[]{}<>|=+*&^%$#@~`") + [" ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000"]
        + ["'s", "'LL", "'t", "\u00e9", "\u0301", "\u00df", "\u4e2d", "\u6587", "\u3042", "\ud55c", "\u0434", "\u03a9", "\u0639", "\u05d0", "\u0e01", "\u0e33", "\u0915\u094d"]
        + ["\u0665", "\u00b2", "\u2163", "\u00bd", "\U0001f600", "\u200d", "\u200b", "\ufe0f", "\u2028", "\u0085", "\x00", "\x0b", "the", "ing", "123", "<|im_end|>"]
    )
    return ["".join(rng.choice(pool) for _ in range(rng.randint(2, 40))) for _ in range(count)]


def corpus():
    strings = (WORDS + NUMBERS + SPACES + CONTROLS + SCRIPTS + EMOJI + PUNCTUATION + CODE + SPECIALS
               + LONG + _random_strings(150, 20))
    return list(dict.fromkeys(strings))


if __name__ == "__main__":
    print(len(corpus()))
