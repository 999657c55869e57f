#!/usr/bin/env python3
"""What a PyTorch user reaches on this card: the Llama-1B decode step as one CUDA graph.

usage: megakernel_baseline.py [--positions 2048,32768] [--compile] [--json-out FILE]

Batch 1, bf16, random weights, distinct caches per layer, attention by
scaled_dot_product_attention(enable_gqa=True); the LM head and the argmax are in the graph. With
--compile the same under torch.compile(mode="max-autotune-no-cudagraphs"), captured likewise, with
the share of a minute that takes. Prints and writes microseconds per token: raw samples and their
median. Needs torch alone.
"""
import argparse
import json
import pathlib
import statistics
import time

import torch
import torch.nn.functional as functional

LAYERS, DIM, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 16, 2048, 32, 8, 64, 8192, 128256
ROPE_BASE, EPSILON = 500000.0, 1e-5
WARM_UP, REPEATS = 5, 40


def random_weight(rows, cols):
    return torch.randn(rows, cols, dtype=torch.bfloat16, device="cuda") * cols**-0.5


class Decoder:
    """Weights and a cache of n_positions, the last of which the step writes."""

    def __init__(self, n_positions):
        self.n_positions = n_positions
        self.embedding = random_weight(VOCAB, DIM)
        self.norm = torch.ones(DIM, dtype=torch.bfloat16, device="cuda")
        self.layers = []
        for _ in range(LAYERS):
            shape = (1, KV_HEADS, n_positions, HEAD_DIM)
            self.layers.append({
                "qkv": random_weight(DIM + 2 * KV_HEADS * HEAD_DIM, DIM),
                "o": random_weight(DIM, DIM),
                "gate_up": random_weight(2 * FFN, DIM),
                "down": random_weight(DIM, FFN),
                "keys": torch.randn(shape, dtype=torch.bfloat16, device="cuda"),
                "values": torch.randn(shape, dtype=torch.bfloat16, device="cuda"),
            })
        inverse = ROPE_BASE**(-torch.arange(0, HEAD_DIM, 2, device="cuda").float() / HEAD_DIM)
        angles = (n_positions - 1) * torch.cat((inverse, inverse))
        self.cosine, self.sine = angles.cos().bfloat16(), angles.sin().bfloat16()

    def turn(self, x):
        half = HEAD_DIM // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * self.cosine + turned * self.sine

    def step(self, token):
        """token [1] -> the next [1]"""
        x = self.embedding[token]
        for layer in self.layers:
            n = functional.rms_norm(x, (DIM,), self.norm, EPSILON)
            q, k, v = functional.linear(n, layer["qkv"]).split(
                (DIM, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM), dim=-1)
            layer["keys"][:, :, -1] = self.turn(k.view(1, KV_HEADS, HEAD_DIM))
            layer["values"][:, :, -1] = v.view(1, KV_HEADS, HEAD_DIM)
            attended = functional.scaled_dot_product_attention(
                self.turn(q.view(1, HEADS, 1, HEAD_DIM)), layer["keys"], layer["values"],
                enable_gqa=True)
            x = x + functional.linear(attended.reshape(1, DIM), layer["o"])
            n = functional.rms_norm(x, (DIM,), self.norm, EPSILON)
            gate, up = functional.linear(n, layer["gate_up"]).split((FFN, FFN), dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, layer["down"])
        n = functional.rms_norm(x, (DIM,), self.norm, EPSILON)
        return functional.linear(n, self.embedding).argmax(-1)


def capture(step, token):
    """A graph of step(token), warmed up outside the capture as torch asks."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(token)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(token)
    return graph


def time_graph(graph):
    samples = []
    for i in range(WARM_UP + REPEATS):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= WARM_UP:
            samples.append(1e3 * begin.elapsed_time(end))
    return samples


@torch.inference_mode()
def measure(n_positions, compiled):
    decoder = Decoder(n_positions)
    token = torch.tensor([17], device="cuda")
    step = decoder.step
    if compiled:
        step = torch.compile(step, mode="max-autotune-no-cudagraphs")
    return time_graph(capture(step, token))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", default="1024,2048,8192,32768,65536,131072")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json-out", type=pathlib.Path)
    arguments = parser.parse_args()
    positions = [int(n) for n in arguments.positions.split(",")]
    rows = {"pytorch-graph": False}
    if arguments.compile:
        rows["pytorch-compile"] = True
    out = {}
    for name, compiled in rows.items():
        for n in positions:
            started = time.monotonic()
            try:
                samples = measure(n, compiled)
            except Exception as error:  # a baseline that fails is reported, not fatal
                print(f"{name} at {n}: {type(error).__name__}: {str(error)[:200]}", flush=True)
                continue
            out.setdefault(name, {})[str(n)] = {
                "median": statistics.median(samples), "samples": samples}
            print(f"{name} at {n} positions: {statistics.median(samples):.1f} us "
                  f"({min(samples):.1f} .. {max(samples):.1f}), {time.monotonic() - started:.1f} s "
                  f"in all", flush=True)
    if arguments.json_out:
        arguments.json_out.write_text(json.dumps(
            {"torch": torch.__version__, "us_per_token": out}, indent=1) + "\n")


if __name__ == "__main__":
    main()
