#!/usr/bin/env python3
"""Three-way agreement on the tiny models of tests/fixtures/transformers: what llama.cpp computes
from the converted GGUF files is what transformers computed from the originals. So the fixtures
hold what a GGUF file means, and not a mistake of the script that wrote them.

usage: fixture_peers.py [DIRECTORY]
"""
import pathlib
import sys
import tempfile

import numpy as np

import peer
from godwit_logits import log_softmax

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import expand_gguf  # noqa: E402

# Both sides compute in float; the bound is that of the C++ test on the same files.
BOUND = 1e-4
# Prompts; recurrent layers take more than 64 tokens in several chunks.
LENGTHS = (1, 2, 17, 40, 65, 130)
# llama.cpp reads GELU from a table of half-precision numbers.
GELU_BOUND = 5e-3

# llama.cpp runs these architectures without the window that their files carry and transformers
# applies: they must differ, once the sequence is longer than the window.
WITHOUT_WINDOW = ("mistral_window", "phi3_window")


def read_logits(path):
    data = path.read_bytes()
    n_tokens, n_vocab = np.frombuffer(data, "<u4", 2)
    tokens = np.frombuffer(data, "<i4", n_tokens, 8)
    logits = np.frombuffer(data, "<f4", n_tokens * n_vocab, 8 + 4 * n_tokens)
    return tokens, logits.reshape(n_tokens, n_vocab)


def main(arguments):
    default = pathlib.Path(__file__).resolve().parents[1] / "fixtures/transformers"
    folder = tempfile.TemporaryDirectory()
    expanded = pathlib.Path(folder.name) / "expanded.gguf"
    models = sorted((pathlib.Path(arguments[0]) if arguments else default).glob("*.gguf"))
    failed = 0
    for model in models:
        tokens, logits = read_logits(model.with_suffix(".logits"))
        # llama.cpp would round activations to the F16 of the matrices.
        expand_gguf.expand(model, expanded)
        llama = peer.LlamaCpp(expanded, n_vocab=logits.shape[1], n_ctx=256)
        worst = 0.0
        for length in [n for n in LENGTHS if n < len(tokens)] + [len(tokens)]:
            ours = log_softmax(logits[length - 1])
            theirs = llama.next_logprobs(tokens[:length])
            worst = max(worst, float(np.abs(ours - theirs).max()))
        agrees = worst <= (GELU_BOUND if model.stem.startswith("gemma") else BOUND)
        as_expected = agrees != (model.stem in WITHOUT_WINDOW)
        verdict = "ok" if as_expected and agrees else "no window there, as expected"
        if not as_expected:
            verdict = "DIFFERS" if not agrees else "agrees, although llama.cpp had no window"
        failed += not as_expected
        print(f"{model.stem:<26} largest difference of log-probabilities {worst:.2e}  {verdict}",
              flush=True)
    print(f"{len(models) - failed} of {len(models)} models as expected")
    return 1 if failed or not models else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
