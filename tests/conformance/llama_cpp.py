#!/usr/bin/env python3
"""Compares Godwit with llama.cpp on a real model. Exit code 0 when the comparison holds.

usage: llama_cpp.py --godwit BINARY --model FILE|NAME --work DIRECTORY [--show-file] [--max-kl KL]
                    [--activation-bits 8] COMPARISON

COMPARISON is one of
  greedy        on a copy of the model expanded to F32, where both sides compute in float: five
                prompts, 64 greedy tokens each. At least four continuations are identical, and
                each difference is explained: the two tokens' logits lie closer together than
                twice the largest logit difference seen before. --show-file also shows those of
                the file as it is, which nobody judges: there llama.cpp rounds activations to 8
                bits, which alone changes what a small model says.
  distributions the next-token distributions of 20 prompts, by their KL divergences. On the same
                copy: llama.cpp's against those of both backends, at most --max-kl each. On the file
                as it is: Godwit's double-precision reference to its cpu backend, on average no
                more than the reference to llama.cpp. The reference's distributions are those of
                the copy, whose weights are the file's; that it reads the file's own blocks to
                the same effect is seen on three prompts, since it is slow.

Exit code 77, which ctest shows as skipped, when the model is not there. The expanded copy is made
in the work directory by tools/expand_gguf.py, once.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

import peer
from godwit_logits import GREEDY_PROMPTS, Godwit, log_softmax

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
N_GREEDY = 64
N_COMPARED = 100  # of llama.cpp's best tokens at each greedy step
N_FEW = 3
MAX_KL = 1e-6  # where both sides compute in float

NEXT_TOKEN_PROMPTS = [
    "The capital of France is", "Water boils at", "def main():\n    print(", "2 + 2 =",
    "The opposite of hot is", "Once upon a", "She opened the door and", "In 1969, the first",
    "for (int i = 0; i <", "My favourite colour is", "To be or not to", "Q: Who wrote Hamlet?\nA:",
    "La capitale de la France est", "The quick brown fox", "1, 2, 3, 4,", "<html><body><h1>",
    "Dear Sir or Madam,", "E = mc", "The", "Birds that cross oceans without rest fly for",
]


def find_model(binary, model):
    """The file that is meant by a path or by the name of a pulled model, or None."""
    if pathlib.Path(model).exists():
        return pathlib.Path(model)
    listing = subprocess.run([binary, "pull", "--list"], stdout=subprocess.PIPE, check=True)
    for line in listing.stdout.decode().splitlines():
        name, *_, path = line.split()
        if name == model and pathlib.Path(path).exists():
            return pathlib.Path(path)
    return None


def expanded_copy(model, work):
    copy = work / f"{model.stem}-F32.gguf"
    if not copy.exists() or copy.stat().st_mtime < model.stat().st_mtime:
        print(f"expanding {model.name} to F32", flush=True)
        subprocess.run([sys.executable, TOOLS / "expand_gguf.py", model, copy], check=True)
    return copy


def kl_divergence(p, q):
    """KL(p || q) of log-probabilities, per row; rounding may leave a hair below zero."""
    return (np.exp(p) * (p - q)).sum(axis=-1)


class Continuation:
    """One prompt's greedy continuations on both sides, and how they differ."""

    def __init__(self, ours, our_tokens, theirs):
        # llama.cpp stops at an end-of-sequence token; what it said before must mean something.
        n = min(len(our_tokens), len(theirs))
        if n < min(16, N_GREEDY):
            raise RuntimeError(f"llama.cpp stopped after {n} tokens; take another prompt")
        their_tokens = [token for token, _ in theirs]
        same = [a == b for a, b in zip(our_tokens, their_tokens)]
        self.n_same = same.index(False) if False in same else n
        self.identical = self.n_same == n
        ours = log_softmax(ours)
        self.noise = 0.0  # largest difference of log-probabilities before the texts part
        for row, (_, best) in zip(ours[:self.n_same], theirs):
            ids = list(best)
            self.noise = max(self.noise, float(np.abs(row[ids] - list(best.values())).max()))
        self.gap = 0.0
        if not self.identical:
            a, b = our_tokens[self.n_same], their_tokens[self.n_same]
            best = theirs[self.n_same][1]
            # A token that is not among llama.cpp's best is no near miss.
            their_gap = best[b] - best[a] if a in best else np.inf
            self.gap = max(float(ours[self.n_same][a] - ours[self.n_same][b]), their_gap)

    @property
    def explained(self):
        return self.identical or self.gap < 2 * self.noise


def compare_greedy(godwit, model, title, judged):
    # The vocabulary's size is in the answer; one token is enough to learn it.
    n_vocab = godwit.logits(model, [[0]], "cpu").shape[1]
    llama = peer.LlamaCpp(model, n_vocab)
    prompts = [llama.tokenize(text) for text in GREEDY_PROMPTS]
    logits, tokens = godwit.logits(model, prompts, "cpu", N_GREEDY)
    print(f"\n{title}: {N_GREEDY} greedy tokens\n  identical  largest difference  gap      prompt")
    results = []
    for i, text in enumerate(GREEDY_PROMPTS):
        theirs = llama.greedy(prompts[i], N_GREEDY, N_COMPARED)
        result = Continuation(logits[i], tokens[i], theirs)
        results.append(result)
        gap = "" if result.identical else f"{result.gap:.1e}"
        verdict = "  NOT EXPLAINED" if judged and not result.explained else ""
        print(f"  {result.n_same:>3} of {len(theirs):<3} {result.noise:>13.1e}  {gap:>12}  "
              f"{text!r}{verdict}", flush=True)
    return results


def run_greedy(godwit, model, options):
    results = compare_greedy(godwit, expanded_copy(model, options.work), "expanded to F32", True)
    if options.show_file:
        compare_greedy(godwit, model, "the file as it is (shown, not judged)", False)
    n_identical = sum(r.identical for r in results)
    print(f"\n{n_identical} of {len(results)} identical, at least {len(results) - 1} expected")
    return n_identical >= len(results) - 1 and all(r.explained for r in results)


def next_token_logprobs(godwit, model):
    """Log-probabilities [20, n_vocab] by llama.cpp and by Godwit's cpu; the prompts' tokens."""
    n_vocab = godwit.logits(model, [[0]], "cpu").shape[1]
    llama = peer.LlamaCpp(model, n_vocab)
    prompts = [llama.tokenize(text) for text in NEXT_TOKEN_PROMPTS]
    theirs = np.stack([llama.next_logprobs(p) for p in prompts])
    return theirs, log_softmax(godwit.logits(model, prompts, "cpu")), prompts


def run_distributions(godwit, model, options):
    copy = expanded_copy(model, options.work)
    theirs, cpu, prompts = next_token_logprobs(godwit, copy)
    reference = log_softmax(godwit.logits(copy, prompts, "reference"))
    theirs_file, cpu_file, _ = next_token_logprobs(godwit, model)
    few = log_softmax(godwit.logits(model, prompts[:N_FEW], "reference"))
    columns = {"llama.cpp || cpu": kl_divergence(theirs, cpu),
               "llama.cpp || ref.": kl_divergence(theirs, reference),
               "ref. || cpu": kl_divergence(reference, cpu_file),
               "ref. || llama.cpp": kl_divergence(reference, theirs_file)}

    print(f"KL divergences{'expanded to F32':>25}{'the file as it is':>40}")
    print("  ".join(f"{name:>18}" for name in columns) + "  prompt")
    for i, text in enumerate(NEXT_TOKEN_PROMPTS):
        print("  ".join(f"{kl[i]:>18.2e}" for kl in columns.values()) + f"  {text!r}")
    float_cpu, float_reference, file_cpu, file_peer = columns.values()
    # numpy's maximum is NaN if one value is, and no bound then holds.
    worst = float(np.max([float_cpu, float_reference]))
    same = float(kl_divergence(reference[:N_FEW], few).max())
    print(f"\nexpanded to F32: largest {worst:.2e}, at most {options.max_kl:.0e} expected"
          f"\nreference, copy || file: largest {same:.2e}, at most {MAX_KL:.0e} expected"
          f"\nthe file: mean {file_cpu.mean():.2e} for cpu, which may not be larger than "
          f"{file_peer.mean():.2e} for llama.cpp")
    return worst <= options.max_kl and same <= MAX_KL and file_cpu.mean() <= file_peer.mean()


COMPARISONS = {"greedy": run_greedy, "distributions": run_distributions}


def main():
    parser = argparse.ArgumentParser(description="Compares Godwit with llama.cpp.")
    parser.add_argument("comparison", choices=COMPARISONS)
    parser.add_argument("--godwit", type=pathlib.Path, required=True)
    parser.add_argument("--model", required=True, help="a file, or the name of a pulled model")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--show-file", action="store_true")
    parser.add_argument("--max-kl", type=float, default=MAX_KL)
    parser.add_argument("--activation-bits", default="16", help="of the cpu backend")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    model = find_model(options.godwit, options.model)
    if model is None:
        print(f"skipped: there is no {options.model}; fetch it with: godwit pull smollm2")
        return 77
    godwit = Godwit(options.godwit, options.work)
    godwit.cpu_flags = ["--activation-bits", options.activation_bits]
    holds = COMPARISONS[options.comparison](godwit, model, options)
    print("holds" if holds else "DOES NOT HOLD")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
