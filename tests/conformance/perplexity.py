#!/usr/bin/env python3
"""Compares `godwit perplexity` with what llama-perplexity said of the same text and model.

usage: perplexity.py --godwit BINARY --model FILE|NAME --work DIRECTORY

The figures stand in tests/fixtures/perplexity/llama_cpp.json, with the version that gave them and
the command; the text beside them is a frozen copy of this project's documentation. On the copy of
the model expanded to F32 both sides compute in float, and the perplexity after every chunk lies
within 0.1 % of llama.cpp's. On the file as it is llama.cpp rounds activations to 8 bits, which
moves its own perplexity further than that: there 2 % are allowed.

Exit code 77, which ctest shows as skipped, when the model is not there.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import llama_cpp

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "perplexity"


def evaluate(binary, model, row):
    command = [binary, "perplexity", "-m", model, "-f", FIXTURE / "text.txt", "--json",
               "-c", row["n_ctx"], "--chunks", row["compared_chunks"],
               "--ppl-stride", row.get("stride", 0)]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["running_ppl"]


def compare(binary, model, row):
    ours = evaluate(binary, model, row)
    theirs = row["running_ppl"][:row["compared_chunks"]]
    if len(ours) != len(theirs):
        raise RuntimeError(f"{len(ours)} chunks, expected {len(theirs)}")
    worst = max(abs(a / b - 1) for a, b in zip(ours, theirs))
    verdict = "" if worst <= row["tolerance"] else "  TOO FAR"
    print(f"{row['name']}: PPL {ours[-1]:.4f}, llama.cpp {theirs[-1]:.4f}; largest relative "
          f"difference {worst:.1e}, at most {row['tolerance']:.0e} expected{verdict}", flush=True)
    return worst <= row["tolerance"]


def main():
    parser = argparse.ArgumentParser(description="Compares perplexities with llama.cpp's.")
    parser.add_argument("--godwit", type=pathlib.Path, required=True)
    parser.add_argument("--model", required=True, help="a file, or the name of a pulled model")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    model = llama_cpp.find_model(options.godwit, options.model)
    if model is None:
        print(f"skipped: there is no {options.model}; fetch it with: godwit pull smollm2")
        return 77
    rows = [row for row in json.loads((FIXTURE / "llama_cpp.json").read_text())["rows"]
            if row["model"] == model.name]
    files = {"as it is": model}
    if any(row["file"] == "F32" for row in rows):
        files["F32"] = llama_cpp.expanded_copy(model, options.work)
    # A list, so that one difference does not hide the next.
    held = [compare(options.godwit, files[row["file"]], row) for row in rows]
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
