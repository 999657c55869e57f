#!/usr/bin/env python3
"""Compares what a model says on the card with what it says on the CPU, greedily, from one F16 file.
Exit code 0 if at least four of five texts of 64 tokens are identical and each difference is
explained: where the texts part, the two tokens' log-probabilities lie closer together than twice
the largest difference of log-probabilities seen before.

usage: greedy_text.py --godwit BINARY --model FILE --work DIRECTORY
       greedy_text.py --self-test     judge made-up texts, with a planted mistake of each kind

The model is expanded to F16 first (`godwit quantize`), since the cuda backend's fast executor takes
16-bit weights (GODWIT_CUDA_EXECUTOR=persistent makes another an error). Then `godwit run` answers a
prompt from that file, on both backends. Needs numpy.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
from godwit_logits import GREEDY_PROMPTS, Godwit, log_softmax  # noqa: E402

N_TOKENS = 64
EXPLAINED = 2.0  # times the differences before


def call(*command):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, check=True,
                          text=True).stdout


def tokens_of(godwit, model, text):
    return [int(i) for i in re.findall(r"\d+", call(godwit, "tokenize", "-m", model, "--ids", "-p",
                                                    text))]


def part_of(card, card_tokens, cpu, cpu_tokens):
    """Tokens alike, the largest difference of log-probabilities before, the gap where they part."""
    same = [a == b for a, b in zip(card_tokens, cpu_tokens)]
    n = same.index(False) if False in same else len(same)
    a, b = log_softmax(card), log_softmax(cpu)
    noise = float(np.abs(a[:n] - b[:n]).max(initial=0.0))
    if n == len(same):
        return n, noise, 0.0
    mine, other = card_tokens[n], cpu_tokens[n]
    return n, noise, float(max(a[n, mine] - a[n, other], b[n, other] - b[n, mine]))


def compare_texts(godwit, model):
    program = godwit.binary
    prompts = [tokens_of(program, model, text) for text in GREEDY_PROMPTS]
    cpu = godwit.logits(model, prompts, "cpu", N_TOKENS)
    card = godwit.logits(model, prompts, "cuda", N_TOKENS)
    return judge(card, cpu)


def judge(card, cpu):
    """Whether the texts of all prompts agree; each side is (logits, tokens), prompt by prompt."""
    n_same, explained = 0, True
    print("identical  largest difference       gap  prompt")
    for i, text in enumerate(GREEDY_PROMPTS):
        n, noise, gap = part_of(card[0][i], card[1][i], cpu[0][i], cpu[1][i])
        n_tokens = len(cpu[1][i])
        n_same += n == n_tokens
        # Not-a-number compares as false, and so explains nothing.
        explained = explained and bool(np.isfinite(noise)) and (n == n_tokens or
                                                                gap <= EXPLAINED * noise)
        print(f"{n:>3} of {n_tokens}  {noise:>18.1e}  {gap:>8.1e}  {text!r}")
    n_prompts = len(GREEDY_PROMPTS)
    print(f"texts: {n_same} of {n_prompts} identical, {n_prompts - 1} expected; differences "
          f"{'explained' if explained else 'NOT EXPLAINED'}")
    return n_same >= n_prompts - 1 and explained


def made_up(rng):
    """Logits that are all but equal on both sides, [prompts, 8 tokens, 16], and their best."""
    cpu = rng.normal(size=(len(GREEDY_PROMPTS), 8, 16))
    card = cpu + rng.uniform(-1e-3, 1e-3, cpu.shape)
    return [[x, x.argmax(-1).tolist()] for x in (card, cpu)]


def part_after(sides, prompt, gap):
    """The fifth token of a prompt becomes another, `gap` behind the best on both sides."""
    card, cpu = sides
    row = cpu[0][prompt][4]
    best, other = np.argsort(row)[[-1, 0]]
    row[other] = row[best] - gap
    card[0][prompt][4] = row
    card[0][prompt][4][other] = row[best] + gap
    card[1][prompt][4] = int(other)


def self_test():
    def nan(sides):
        sides[0][0][2][3] = np.nan

    plants = {
        "nothing": (lambda sides: None, True),
        "one text that parts at a tie": (lambda sides: part_after(sides, 1, 1e-5), True),
        "one that parts where the best is far ahead": (lambda sides: part_after(sides, 1, 1.0), False),
        "two that part at ties": (lambda sides: [part_after(sides, i, 1e-5) for i in (1, 2)], False),
        "logits that are no numbers": (nan, False),
    }
    for what, (plant, holds) in plants.items():
        sides = made_up(np.random.default_rng(1))
        plant(sides)
        if judge(*sides) != holds:
            sys.exit(f"greedy_text: planted {what}: judged {not holds}")
    print(f"greedy_text: {len(plants)} made-up cases judged as they should be")
    return 0


def answer(program, model, backend):
    """The answer's text and its speed, as `godwit run` gives them."""
    told = json.loads(call(program, "run", "-m", model, "--backend", backend, "-p",
                           "Name three birds that cross oceans.", "-n", "48", "--temp", "0", "-c",
                           "512", "--json"))
    print(f"run --backend {backend}: {told['text']!r}")
    return told["text"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--godwit", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not (options.godwit and options.model and options.work):
        parser.error("expected --godwit, --model and --work")
    options.work.mkdir(parents=True, exist_ok=True)
    model = options.work / f"{options.model.stem}-f16.gguf"
    call(options.godwit, "quantize", "--allow-requantize", options.model, model, "F16")
    holds = compare_texts(Godwit(options.godwit, options.work, kv="f16"), model)
    answers = [answer(options.godwit, model, backend) for backend in ("cuda", "cpu")]
    holds = holds and all(text.strip() for text in answers)
    print("holds" if holds else "DOES NOT HOLD")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
