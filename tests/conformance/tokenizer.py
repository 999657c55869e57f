#!/usr/bin/env python3
"""Godwit's token ids are llama.cpp's, on every string of the corpus, with and without special
tokens, for any vocabulary (a file of a vocabulary alone will do).

usage: tokenizer.py GODWIT_TOKENIZE_LINES MODEL.gguf [MODEL.gguf ...]

The program is the build's tests/godwit_tokenize_lines. Needs gguf, requests and xllamacpp
(tools/requirements.txt).
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from tokenizer_corpus import corpus  # noqa: E402
from tokenizer_peer import TokenizerPeer  # noqa: E402

SHOWN_DIFFERENCES = 10
SETTINGS = [{"parse_special": True, "add_bos": True}, {"parse_special": False, "add_bos": False}]


def godwit_ids(program, model, requests):
    """Godwit's ids of each request, all from one process: a vocabulary is read once."""
    answers = subprocess.run([program, model], input="".join(json.dumps(r) + "\n" for r in requests),
                             capture_output=True, text=True, check=False)
    if answers.returncode != 0:
        sys.exit(answers.stderr.strip() or f"{program} ended with status {answers.returncode}")
    return [json.loads(line) for line in answers.stdout.splitlines()]


def compare(program, model):
    requests = [{"text": text} | setting for text in corpus() for setting in SETTINGS]
    peer = TokenizerPeer(model)
    n_differences = 0
    for request, ours in zip(requests, godwit_ids(program, model, requests), strict=True):
        theirs = peer.ids(request["text"], request["parse_special"], request["add_bos"])
        if ours == theirs:
            continue
        n_differences += 1
        if n_differences <= SHOWN_DIFFERENCES:
            print(f"  {json.dumps(request)}\n    llama.cpp {theirs}\n    godwit    {ours}")
    print(f"{model}: {len(requests)} encodings, {n_differences} differences")
    return n_differences == 0


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    # Every model is compared even when an early one differs.
    results = [compare(arguments[0], model) for model in arguments[1:]]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
