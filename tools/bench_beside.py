#!/usr/bin/env python3
"""Godwit and a llama-bench binary on the same models, interleaved: the table of docs/BENCHMARKS.md.

Runs godwit, peer, peer, godwit for each model, so that a machine that speeds up or slows down in
between favours neither, and prints the median tokens/s of all repetitions with their range.

usage: tools/bench_beside.py --godwit build/release/bin/godwit --peer /path/to/llama-bench MODEL...
"""
import argparse
import json
import pathlib
import statistics
import subprocess


def samples(binary, is_godwit, model, options):
    command = [binary] + (["bench"] if is_godwit else []) + [
        "-m", model, "-p", str(options.prompt), "-n", str(options.generate),
        "-d", str(options.depth), "-r", str(options.repetitions), "-t", str(options.threads), "-o", "json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def collect(model, options):
    """{("godwit" | "peer", "pp" | "tg"): [tokens/s]}, and Godwit's own rows."""
    speeds, own = {}, []
    for is_godwit in (True, False, False, True):
        name = "godwit" if is_godwit else "peer"
        for row in samples(options.godwit if is_godwit else options.peer, is_godwit, model, options):
            kind = "tg" if row["n_gen"] else "pp"
            speeds.setdefault((name, kind), []).extend(row["samples_ts"])
            if is_godwit:
                own.append(row)
    return speeds, own


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--godwit", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--generate", type=int, default=64)
    parser.add_argument("-d", "--depth", type=int, default=0, help="positions filled beforehand")
    parser.add_argument("-r", "--repetitions", type=int, default=3)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()

    print("| model | test | godwit t/s (range) | llama.cpp t/s (range) | ratio | GB/s | % of measured |")
    print("|---|---|---|---|---|---|---|")
    depth = f" @ {options.depth}" if options.depth else ""
    for model in options.models:
        speeds, own = collect(model, options)
        for kind, length in (("tg", options.generate), ("pp", options.prompt)):
            if not length:
                continue
            ours, theirs = speeds[("godwit", kind)], speeds[("peer", kind)]
            rows = [row for row in own if bool(row["n_gen"]) == (kind == "tg")]
            bandwidth = statistics.median(row["measured_bandwidth_gbps"] for row in rows)
            gbps = rows[0]["bytes_per_token"] * statistics.median(ours) * 1e-9
            print(f"| {pathlib.Path(model).stem} | {kind}{length}{depth} | {spread(ours)} | {spread(theirs)} | "
                  f"{statistics.median(ours) / statistics.median(theirs):.2f} | {gbps:.1f} | "
                  f"{100 * gbps / bandwidth:.0f} of {bandwidth:.1f} |", flush=True)
    print(f"\n{own[0]['cpu_info']}, {own[0]['isa']}, {options.threads} threads, commit {own[0]['build_commit']}")


if __name__ == "__main__":
    main()
