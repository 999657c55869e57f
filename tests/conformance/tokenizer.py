#!/usr/bin/env python3
"""Godwit's token ids are llama.cpp's, on every string of the corpus, with and without special
tokens, for any vocabulary (a file of a vocabulary alone will do).

usage: tokenizer.py GODWIT MODEL.gguf [MODEL.gguf ...]

Needs gguf, requests and xllamacpp (tools/requirements.txt).
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from tokenizer_corpus import corpus  # noqa: E402
from tokenizer_peer import TokenizerPeer  # noqa: E402

SHOWN_DIFFERENCES = 10


def godwit_ids(godwit, model, text, flags):
    answer = subprocess.run(
        [godwit, "tokenize", "-m", model, "--ids", "--no-escape", "--stdin", *flags],
        input=text.encode(), capture_output=True, check=True)
    return json.loads(answer.stdout)


def compare(godwit, model):
    peer = TokenizerPeer(model)
    n_differences = 0
    strings = corpus()
    for text in strings:
        for flags, parse_special, add_special in (([], True, True),
                                                  (["--no-bos", "--no-parse-special"], False, False)):
            theirs = peer.ids(text, parse_special, add_special)
            ours = godwit_ids(godwit, model, text, flags)
            if ours == theirs:
                continue
            n_differences += 1
            if n_differences <= SHOWN_DIFFERENCES:
                print(f"  {ascii(text)} {flags}\n    llama.cpp {theirs}\n    godwit    {ours}")
    print(f"{model}: {len(strings)} strings, {n_differences} differences")
    return n_differences == 0


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    # Every model is compared even when an early one differs.
    results = [compare(arguments[0], model) for model in arguments[1:]]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
