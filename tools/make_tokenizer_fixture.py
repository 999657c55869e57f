#!/usr/bin/env python3
"""Makes tests/fixtures/tokenizer: strings, the ids that llama.cpp gives them, and the words that the
published pre-tokenizers cut them into.

usage: make_tokenizer_fixture.py SMOLLM2.gguf [OUTPUT_DIRECTORY]

Needs gguf, requests, tokenizers and xllamacpp (tools/requirements.txt).
  corpus.json   the strings of tools/tokenizer_corpus.py
  smollm2.json  for each string llama.cpp's ids: `parse` with special tokens recognised, `text`
                without, null where that is the same
  words.json    for each pre-tokenizer and each string the lengths in bytes of its words, by the
                `tokenizers` package from the regular expressions of the models' tokenizer.json
"""
import json
import pathlib
import sys

from tokenizers import Regex, pre_tokenizers

from tokenizer_corpus import corpus
from tokenizer_peer import TokenizerPeer

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(regex):
    return pre_tokenizers.Split(Regex(regex), "isolated")


PRETOKENIZERS = {
    "gpt-2": split(GPT2),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split(GPT2)]),
    "qwen2": split(QWEN2),
    "qwen35": split(QWEN35),
    "llama-bpe": split(LLAMA3),
}


def write(path, value):
    # One string's entry a line keeps the files readable in a diff.
    path.write_text(value + "\n", encoding="ascii")


def lines(entries):
    return "[\n" + ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries) + "\n]"


def word_lengths(pretokenizer, text):
    return [len(word.encode()) for word, _ in pretokenizer.pre_tokenize_str(text)] if text else []


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    default = pathlib.Path(__file__).resolve().parents[1] / "tests/fixtures/tokenizer"
    out = pathlib.Path(arguments[1]) if len(arguments) > 1 else default
    out.mkdir(parents=True, exist_ok=True)
    strings = corpus()
    write(out / "corpus.json", lines(strings))

    peer = TokenizerPeer(arguments[0])
    rows = []
    for text in strings:
        parse, plain = peer.ids(text, True), peer.ids(text, False)
        rows.append({"parse": parse, "text": None if plain == parse else plain})
    write(out / "smollm2.json", lines(rows))

    names = list(PRETOKENIZERS)
    tables = (f'"{n}":' + lines([word_lengths(PRETOKENIZERS[n], s) for s in strings]) for n in names)
    write(out / "words.json", "{" + ",\n".join(tables) + "}")


if __name__ == "__main__":
    main(sys.argv[1:])
