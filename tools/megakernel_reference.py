#!/usr/bin/env python3
"""R, the bf16 reference of the megakernel's grader: an ordinary PyTorch Llama.

usage: megakernel_reference.py FOLDER [--device cuda|cpu]

Reads FOLDER/plan.json, which `godwit check megakernel --plan` writes: shapes, tokens, and the rule
of every weight and cached key and value (src/grader/value_rule.h). Runs the decode steps of every
seed twice, on freshly allocated inputs, and writes FOLDER/seed_<n>.f32 (logits, [n_steps, n_vocab])
and FOLDER/reference.json (how far the second run was from the first, time per step).

Everything is in bf16 as a user's model would be: weights, residual stream, cache; attention is
scaled_dot_product_attention over repeat_interleave'd keys and values, the flash kernel where there
is one: without that and torch's deterministic algorithms a second run now and then rounds another
way. Needs torch alone.
"""
import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before torch opens cuBLAS

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

GOLDEN = 0x9E3779B97F4A7C15
CHUNK = 1 << 26


def signed64(value):
    """A 64-bit pattern as torch's int64."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def shift_right(z, bits):
    """Logical, where torch's is arithmetic."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def random_bits(seed, index):
    """SplitMix64 of (seed, index), as base/random.h."""
    z = (index + 1) * signed64(GOLDEN) + signed64(seed)
    z = (z ^ shift_right(z, 30)) * signed64(0xBF58476D1CE4E5B9)
    z = (z ^ shift_right(z, 27)) * signed64(0x94D049BB133111EB)
    return z ^ shift_right(z, 31)


def uniform(seed, count, half_width, offset, device, first=0):
    """bf16 values `first` to `first + count` of a rule."""
    out = torch.empty(count, dtype=torch.bfloat16, device=device)
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        index = torch.arange(first + begin, first + end, dtype=torch.int64, device=device)
        high = shift_right(random_bits(seed, index), 40) - (1 << 23)
        unit = high.to(torch.float32) * torch.tensor(2.0**-23, device=device)
        scaled = unit * torch.tensor(half_width, dtype=torch.float32, device=device)
        out[begin:end] = (scaled + torch.tensor(offset, dtype=torch.float32, device=device)).to(
            torch.bfloat16)
    return out


def check_probe(tensor, values):
    """That the first values are the grader's, bit for bit."""
    expected = tensor["bf16_bits"]
    found = values.flatten()[:len(expected)].view(torch.int16).tolist()
    found = [bits & 0xFFFF for bits in found]
    if found != expected:
        raise SystemExit(f"{tensor['name']}: made {found}, the grader made {expected}")


def by_halves(rows, n_heads, head_dim):
    """Rows of heads whose dimensions (2i, 2i + 1) turn together, in the order of (i, i + half)."""
    tail = rows.shape[1:]
    pairs = rows.view(n_heads, head_dim // 2, 2, *tail)
    return pairs.transpose(1, 2).reshape(n_heads * head_dim, *tail).contiguous()


def rms_norm(x, weight, epsilon):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return weight * wide.to(x.dtype)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Llama:
    """The model of one seed with its cache, ready for the step after the cached positions."""

    def __init__(self, plan, entry, device):
        self.plan = plan
        self.device = device
        self.weights = {}
        for tensor in entry["tensors"]:
            values = uniform(int(tensor["seed"]), tensor["rows"] * tensor["cols"],
                             tensor["half_width"], tensor["offset"], device)
            check_probe(tensor, values)
            self.weights[tensor["name"]] = values.view(tensor["rows"], tensor["cols"]).squeeze(0)
        if plan["adjacent_pairs"]:
            for name, heads in (("q", plan["n_heads"]), ("k", plan["n_kv_heads"])):
                for layer in range(plan["n_layers"]):
                    key = f"blk.{layer}.attn_{name}.weight"
                    self.weights[key] = by_halves(self.weights[key], heads, plan["head_dim"])
        self.keys, self.values = [], []
        for layer in range(plan["n_layers"]):
            self.keys.append(self.cached(entry, layer, 0))
            self.values.append(self.cached(entry, layer, 1))
        inverse = 1.0 / plan["rope_base"]**(
            torch.arange(0, plan["head_dim"], 2, dtype=torch.int64).float() / plan["head_dim"])
        self.inverse = inverse.to(device)

    def cached(self, entry, layer, part):
        """[1, n_kv_heads, capacity, head_dim]"""
        plan, cache = self.plan, entry["cache"]
        heads, dim = plan["n_kv_heads"], plan["head_dim"]
        half_width = cache["v_half_width" if part else "k_half_width"]
        values = uniform(int(cache["seeds"][2 * layer + part]),
                         plan["n_positions"] * heads * dim, half_width, 0.0, self.device)
        values = values.view(plan["n_positions"], heads, dim)
        if part == 0 and plan["adjacent_pairs"]:
            values = torch.cat((values[..., 0::2], values[..., 1::2]), dim=-1)
        out = torch.zeros(1, heads, plan["n_positions"] + plan["n_steps"], dim,
                          dtype=torch.bfloat16, device=self.device)
        out[0, :, :plan["n_positions"]] = values.transpose(0, 1)
        return out

    def turn(self, x, position):
        angles = position * self.inverse
        both = torch.cat((angles, angles))
        cosine, sine = both.cos().to(x.dtype), both.sin().to(x.dtype)
        return x * cosine + rotate_half(x) * sine

    def attend(self, layer, x, position):
        plan = self.plan
        heads, kv_heads, dim = plan["n_heads"], plan["n_kv_heads"], plan["head_dim"]
        weight = lambda name: self.weights[f"blk.{layer}.{name}.weight"]
        q = functional.linear(x, weight("attn_q")).view(1, heads, 1, dim)
        k = functional.linear(x, weight("attn_k")).view(1, kv_heads, 1, dim)
        v = functional.linear(x, weight("attn_v")).view(1, kv_heads, 1, dim)
        q, k = self.turn(q, position), self.turn(k, position)
        self.keys[layer][:, :, position] = k[:, :, 0]
        self.values[layer][:, :, position] = v[:, :, 0]
        keys = self.keys[layer][:, :, :position + 1].repeat_interleave(heads // kv_heads, dim=1)
        values = self.values[layer][:, :, :position + 1].repeat_interleave(heads // kv_heads, dim=1)
        attended = functional.scaled_dot_product_attention(q, keys, values)
        return functional.linear(attended.reshape(1, heads * dim), weight("attn_output"))

    def feed_forward(self, layer, x):
        weight = lambda name: self.weights[f"blk.{layer}.{name}.weight"]
        gate = functional.silu(functional.linear(x, weight("ffn_gate")))
        return functional.linear(gate * functional.linear(x, weight("ffn_up")), weight("ffn_down"))

    def step(self, token, position):
        epsilon = self.plan["epsilon"]
        x = self.weights["token_embd.weight"][token].view(1, -1)
        for layer in range(self.plan["n_layers"]):
            norm = lambda name: self.weights[f"blk.{layer}.{name}.weight"]
            x = x + self.attend(layer, rms_norm(x, norm("attn_norm"), epsilon), position)
            x = x + self.feed_forward(layer, rms_norm(x, norm("ffn_norm"), epsilon))
        x = rms_norm(x, self.weights["output_norm.weight"], epsilon)
        output = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return functional.linear(x, output)[0].float()


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


@torch.inference_mode()
def run(plan, entry, device):
    """Logits [n_steps, n_vocab] on the host, and seconds per step."""
    model = Llama(plan, entry, device)
    synchronize(device)
    logits, started = [], time.monotonic()
    for i, token in enumerate(entry["tokens"]):
        logits.append(model.step(token, plan["n_positions"] + i))
    synchronize(device)
    seconds = (time.monotonic() - started) / len(entry["tokens"])
    return torch.stack(logits).cpu(), seconds


def largest_error(a, b):
    """Over steps, ||a - b|| / ||b||."""
    a, b = a.double(), b.double()
    return ((a - b).norm(dim=1) / b.norm(dim=1)).max().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    plan = json.loads((arguments.folder / "plan.json").read_text())
    torch.use_deterministic_algorithms(True, warn_only=True)
    kernels = [SDPBackend.FLASH_ATTENTION] if arguments.device == "cuda" else [SDPBackend.MATH]
    seeds = []
    for entry in plan["seeds"]:
        with sdpa_kernel(kernels):
            first, seconds = run(plan, entry, arguments.device)
            second, _ = run(plan, entry, arguments.device)
        first.numpy().tofile(arguments.folder / f"seed_{entry['seed']}.f32")
        z = largest_error(second, first)
        seeds.append({"seed": entry["seed"], "z": z, "ms_per_step": 1e3 * seconds})
        print(f"seed {entry['seed']}: Z {z:.3g}, {1e3 * seconds:.2f} ms per step, "
              f"logits of deviation {first.std():.3f}", flush=True)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    (arguments.folder / "reference.json").write_text(
        json.dumps({"torch": torch.__version__, "device": name, "seeds": seeds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
