#!/usr/bin/env python3
"""Makes tests/fixtures/tokenizer: strings, the ids that llama.cpp gives them, and the words that the
published pre-tokenizers cut them into.

usage: make_tokenizer_fixture.py SMOLLM2.gguf [OUTPUT_DIRECTORY]

Needs gguf, requests, tokenizers and xllamacpp (tools/requirements.txt).
  corpus.json   the strings of tools/tokenizer_corpus.py
  smollm2.json  for each string llama.cpp's ids: `parse` with special tokens recognised, `text`
                without, null where that is the same
  words.json    for each pre-tokenizer and each string the lengths in bytes of its words, by the
                `tokenizers` package from the regular expressions of the models' tokenizer.json;
                for all but the first pre-tokenizer, by index, only those that differ from its
  small.json    vocabularies of a few hundred tokens (tokenizer_vocabularies.py), each with
                llama.cpp's ids as above, the model's own additions (BOS) among them
"""
import json
import pathlib
import sys
import tempfile

from tokenizer_corpus import corpus
from tokenizer_patterns import PRETOKENIZERS
from tokenizer_peer import TokenizerPeer
from tokenizer_vocabularies import vocabulary, write_gguf

def write(path, value):
    # One string's entry a line keeps the files readable in a diff.
    path.write_text(value + "\n", encoding="ascii")


def lines(entries):
    return "[\n" + ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries) + "\n]"


def word_lengths(pretokenizer, text):
    return [len(word.encode()) for word, _ in pretokenizer.pre_tokenize_str(text)] if text else []


def ids_of(peer, strings, add_special):
    rows = []
    for text in strings:
        parse = peer.ids(text, True, add_special)
        plain = peer.ids(text, False, add_special)
        rows.append({"parse": parse, "text": None if plain == parse else plain})
    return rows


# name of the model (which Phi-3's stripping of white space hangs on), vocabulary
SMALL = {
    "llama": ("small", "llama", {}),
    "gemma": ("small", "llama", {"add_space_prefix": False, "add_eos_token": True}),
    "phi3": ("Phi-3 small", "llama", {"add_bos_token": False}),
    "gemma4": ("small", "gemma4", {}),
}


def small_vocabularies(strings):
    # The longest strings add bytes to the fixture but no cases.
    strings = [text for text in strings if len(text) <= 40]
    blocks = []
    for key, (name, model, more) in SMALL.items():
        vocab = vocabulary(model, **more)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "vocabulary.gguf"
            write_gguf(vocab, name, path)
            rows = ids_of(TokenizerPeer(path), strings, True)
        blocks.append(f'"{key}":{{"name":{json.dumps(name)},"vocabulary":'
                      + json.dumps(vocab, separators=(",", ":")) + ',\n"ids":' + lines(rows) + "}")
    return "{" + ",\n".join(blocks) + f',\n"strings":{lines(strings)}' + "}"


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    default = pathlib.Path(__file__).resolve().parents[1] / "tests/fixtures/tokenizer"
    out = pathlib.Path(arguments[1]) if len(arguments) > 1 else default
    out.mkdir(parents=True, exist_ok=True)
    strings = corpus()
    write(out / "corpus.json", lines(strings))

    write(out / "smollm2.json", lines(ids_of(TokenizerPeer(arguments[0]), strings, False)))
    write(out / "small.json", small_vocabularies(strings))

    names = list(PRETOKENIZERS)
    first = [word_lengths(PRETOKENIZERS[names[0]], s) for s in strings]
    tables = [f'"{names[0]}":' + lines(first)]
    for name in names[1:]:
        lengths = [word_lengths(PRETOKENIZERS[name], s) for s in strings]
        rows = (f'"{i}":{json.dumps(n, separators=(",", ":"))}'
                for i, (n, f) in enumerate(zip(lengths, first)) if n != f)
        tables.append(f'"{name}":' + "{\n" + ",\n".join(rows) + "\n}")
    write(out / "words.json", "{" + ",\n".join(tables) + "}")


if __name__ == "__main__":
    main(sys.argv[1:])
