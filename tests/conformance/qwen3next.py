#!/usr/bin/env python3
"""Compares Godwit with llama.cpp on synthetic Qwen3-Next files of true widths. Exit code 0 when all
gates hold.

usage: qwen3next.py --godwit BINARY --work DIRECTORY [GATE...]

Four layers (three recurrent, one of attention) of Qwen3-Next-80B-A3B's widths, a small vocabulary,
random weights; `godwit synth` makes the files in the work directory, once (8 GiB). llama.cpp takes
its prompts token by token, since its own prompt path differs from its step path. GATE is any of

  f32    32 experts in F32, where both compute in float: three prompts, and the 24 tokens that Godwit
         appends to each by greedy choice. After every token llama.cpp's choice is the same, log-
         probabilities differ by at most 1e-2 and the KL divergence is at most 1e-5.
  long   the same file after 1,100 tokens: the next 100 choices are llama.cpp's, differences at most
         2, KL at most 2e-2; and Godwit's prompt path and step path agree to the bit (200 tokens).
  q4_k   512 experts in Q4_K. Over the next-token distributions of six prompts: KL(double-precision
         reference || Godwit) at most KL(reference || llama.cpp), on average; Godwit's choice is the
         reference's.
  iq2    the same with IQ2_XXS experts, their down matrices in IQ2_S, the rest in Q4_K.

A choice may differ where it is a tie: where the two tokens lie closer together than twice the
largest difference of log-probabilities seen at that place, and that is within its bound. A row is a
tie of routers where in some layer the logits of the last expert chosen and of the first one not
chosen are less than 5e-5 apart, some times the engines' differences (`godwit logits --router-gaps`).
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

import peer
from godwit_logits import Godwit, log_softmax
from llama_cpp import kl_divergence

N_VOCAB = 4096
N_GREEDY = 24
N_LONG, N_AFTER = 1100, 100
N_STEPWISE = 200
ROUTER_TIE = 5e-5
SHAPE = ["--shape", "qwen3next-8l", "--layers", "4", "--vocab", str(N_VOCAB)]
DENSE = ["attn_qkv", "attn_gate", "attn_q", "attn_k", "attn_v", "attn_output", "ssm_out", "ssm_ba",
         "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", "token_embd", "output"]
FILES = {
    "f32": ["--experts", "32", "--type", "f32"],
    "q4_k": ["--type", "q4_k"],
    "iq2": ["--type", "iq2_xxs", "--embedding-type", "q4_k", "--tensor-type",
            "ffn_down_exps=iq2_s"] + [x for name in DENSE for x in ("--tensor-type",
                                                                     f"{name}=q4_k")],
}


def make_file(options, name):
    path = options.work / f"qwen3next-4l-{name}.gguf"
    if not path.exists():
        part = path.with_suffix(".part")
        subprocess.run([options.godwit, "synth", *SHAPE, *FILES[name], "-o", part], check=True,
                       stderr=subprocess.DEVNULL)
        part.rename(path)
    return path


def random_prompt(seed, n):
    """Ids of plain tokens; the first few hundred are bytes and the last may be special."""
    return [int(t) for t in np.random.default_rng(seed).integers(300, N_VOCAB - 64, n)]


class Comparison:
    """Rows of log-probabilities after the same tokens on both sides. router_gaps, a number per row:
    rows in which a router all but tied may have gone to other experts on the other side, so they
    are counted and not judged."""

    def __init__(self, ours, theirs, router_gaps=None):
        rows = np.ones(len(theirs), bool) if router_gaps is None else router_gaps >= ROUTER_TIE
        self.n_router_ties = int((~rows).sum())
        self.ours, self.theirs = log_softmax(ours)[rows], theirs[rows]
        self.differences = np.abs(self.ours - self.theirs).max(axis=-1)
        self.kl = kl_divergence(self.theirs, self.ours)

    def n_chosen_alike(self):
        """Rows with the same best token on both sides, ties counted as the same; and ties."""
        n, n_ties = 0, 0
        for ours, theirs, noise in zip(self.ours, self.theirs, self.differences):
            a, b = int(ours.argmax()), int(theirs.argmax())
            tie = a != b and max(ours[a] - ours[b], theirs[b] - theirs[a]) < 2 * noise
            n += a == b or tie
            n_ties += tie
        return n, n_ties

    def judge(self, title, max_difference, max_kl):
        n, n_ties = self.n_chosen_alike()
        worst, kl = float(self.differences.max(initial=0.0)), float(self.kl.max(initial=0.0))
        # A router that ties in more than one row of ten is no accident.
        holds = 10 * self.n_router_ties <= len(self.kl)
        holds = holds and n == len(self.kl) and worst <= max_difference and kl <= max_kl
        print(f"{title}: {n} of {len(self.kl)} choices alike ({n_ties} ties; {self.n_router_ties} more "
              f"rows are ties of routers), largest difference {worst:.1e} of {max_difference:.0e}, "
              f"largest KL {kl:.1e} of {max_kl:.0e}{'' if holds else '  DOES NOT HOLD'}", flush=True)
        return holds


def continue_greedily(godwit, llama, model, prompt, n):
    """Godwit's n greedy rows after the prompt, and llama.cpp's after the same tokens."""
    rows, tokens = godwit.logits(model, [prompt], "cpu", n, "--router-gaps")
    gaps = np.array(godwit.header["router_gaps"][0])
    theirs = [llama.next_logprobs(prompt + tokens[0][:i], keep=True) for i in range(n)]
    return Comparison(rows[0], np.stack(theirs), gaps)


def compare_f32(godwit, options):
    model = make_file(options, "f32")
    llama = peer.LlamaCpp(model, N_VOCAB, n_ubatch=1)
    prompts = [random_prompt(seed, n) for seed, n in ((1, 3), (2, 7), (3, 30))]
    return all([continue_greedily(godwit, llama, model, prompt, N_GREEDY).judge(
        f"f32, {len(prompt)} tokens and {N_GREEDY}", 1e-2, 1e-5) for prompt in prompts])


def compare_long(godwit, options):
    model = make_file(options, "f32")
    prompt = random_prompt(4, N_LONG)
    some = [prompt[:N_STEPWISE]]
    same = np.array_equal(godwit.logits(model, some, "cpu"),
                          godwit.logits(model, some, "cpu", 0, "--stepwise"))
    print(f"prompt at once and step by step: {'the same bits' if same else 'DIFFER'}", flush=True)
    llama = peer.LlamaCpp(model, N_VOCAB, n_ctx=N_LONG + N_AFTER, n_ubatch=1)
    return continue_greedily(godwit, llama, model, prompt, N_AFTER).judge(
        f"long, {N_AFTER} after {N_LONG}", 2.0, 2e-2) and same


def compare_quantised(godwit, options, name):
    model = make_file(options, name)
    llama = peer.LlamaCpp(model, N_VOCAB, n_ubatch=1)
    prompts = [random_prompt(10 + i, 2 + 2 * i) for i in range(6)]
    theirs = np.stack([llama.next_logprobs(p) for p in prompts])
    del llama
    reference = log_softmax(godwit.logits(model, prompts, "reference"))
    ours = Comparison(godwit.logits(model, prompts, "cpu"), reference)
    kl_theirs = kl_divergence(reference, theirs)
    n, n_ties = ours.n_chosen_alike()
    n_theirs = int((reference.argmax(-1) == theirs.argmax(-1)).sum())
    holds = ours.kl.mean() <= kl_theirs.mean() and n == len(prompts)
    print(f"{name}: mean KL from the reference {ours.kl.mean():.1e} for Godwit, "
          f"{kl_theirs.mean():.1e} for llama.cpp; choices of the reference {n} of {len(prompts)} "
          f"({n_ties} ties) and {n_theirs}{'' if holds else '  DOES NOT HOLD'}", flush=True)
    return holds


GATES = {"f32": compare_f32, "long": compare_long,
         "q4_k": lambda godwit, options: compare_quantised(godwit, options, "q4_k"),
         "iq2": lambda godwit, options: compare_quantised(godwit, options, "iq2")}


def main():
    parser = argparse.ArgumentParser(description="Qwen3-Next at true widths beside llama.cpp.")
    parser.add_argument("gates", nargs="*", metavar="GATE", help=", ".join(GATES))
    parser.add_argument("--godwit", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    unknown = set(options.gates) - set(GATES)
    if unknown:
        parser.error(f"expected {', '.join(GATES)}, found {', '.join(sorted(unknown))}")
    options.work.mkdir(parents=True, exist_ok=True)
    godwit = Godwit(options.godwit, options.work, n_ctx=N_LONG + N_AFTER)
    results = [GATES[name](godwit, options) for name in options.gates or GATES]
    print("holds" if all(results) else "DOES NOT HOLD")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
