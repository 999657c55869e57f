#!/usr/bin/env python3
"""Compares what `godwit quantize` loses with what llama.cpp's quantisers lose on the same weights.

usage: quantize.py --godwit PATH --work FOLDER [--model MODEL.gguf]

Two errors per type, each relative to the weights: the plain RMS error, and one in which a weight x
counts sqrt(2 m + x^2), m the mean square of its 256 neighbours, as llama.cpp's IQ quantisers weigh
it. Neither may exceed llama.cpp's by more than 5 %, on bell-shaped weights, on weights with heavy
tails, and on the embedding of a real model where there is one. Types that llama.cpp quantises with
an importance matrix only get one of ones. Q8_0, F16 and BF16 must be the same bytes.

Prints the table of docs/QUANTIZE.md.
"""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys

import gguf
import numpy as np
import xllamacpp

COLUMNS = 1024
ROWS = 512
TOLERANCE = 1.05
SAME_BYTES = ("F16", "BF16", "Q8_0")
# Godwit's name of the file whose matrices all have the type under --pure.
FILE_TYPES = {
    "F16": "F16", "BF16": "BF16", "Q8_0": "Q8_0", "Q6_K": "Q6_K", "Q5_1": "Q5_1", "Q5_K": "Q5_K_S",
    "Q5_0": "Q5_0", "Q4_1": "Q4_1", "Q4_K": "Q4_K_S", "Q4_0": "Q4_0", "IQ4_NL": "IQ4_NL",
    "IQ4_XS": "IQ4_XS", "Q3_K": "Q3_K_S", "IQ3_S": "IQ3_S", "IQ3_XXS": "IQ3_XXS", "Q2_K": "Q2_K",
    "IQ2_S": "IQ2_M", "IQ2_XS": "IQ2_XS", "IQ2_XXS": "IQ2_XXS",
}


def llama_cpp():
    """ggml_quantize_chunk of the library inside the xllamacpp wheel."""
    folder = pathlib.Path(xllamacpp.__file__).parent
    library = ctypes.CDLL(str(next(folder.glob("xllamacpp*.so"))))
    quantize = library.ggml_quantize_chunk
    pointer = ctypes.c_void_p
    quantize.argtypes = [ctypes.c_int, pointer, pointer, ctypes.c_int64, ctypes.c_int64,
                         ctypes.c_int64, pointer]
    quantize.restype = ctypes.c_size_t
    return quantize


def peer_bytes(quantize, weights, kind):
    block, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros(weights.size // block * size, np.uint8)
    ones = np.ones(COLUMNS, np.float32)
    importance = ones.ctypes.data if kind.name.startswith("IQ") else None
    n = quantize(int(kind), weights.ctypes.data, out.ctypes.data, 0, len(weights), COLUMNS,
                 importance)
    assert n == out.size, (kind, n, out.size)
    return out


def real_weights(path):
    """The embedding of a model, rows joined, or None."""
    if not path or not os.path.exists(path):
        return None
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == "token_embd.weight")
    weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).ravel()
    return weights[: COLUMNS * ROWS].reshape(ROWS, COLUMNS).copy()


def data_sets(model):
    random = np.random.default_rng(1)
    shape = (ROWS, COLUMNS)
    yield "gaussian", random.normal(0, 0.02, shape).astype(np.float32)
    yield "heavy tails", (0.02 * random.standard_t(4, shape)).astype(np.float32)
    real = real_weights(model)
    if real is not None:
        yield "embedding", real


def write_model(path, weights):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_tensor("blk.0.ffn_up.weight", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def godwit_bytes(godwit, source, work, kind):
    target = work / "quantised.gguf"
    subprocess.run([godwit, "quantize", "--pure", source, target, FILE_TYPES[kind.name]],
                   check=True, capture_output=True)
    tensor = gguf.GGUFReader(target).tensors[0]
    assert tensor.tensor_type == kind, (tensor.tensor_type, kind)
    return np.frombuffer(tensor.data.tobytes(), np.uint8)


def errors(weights, raw, kind):
    """Relative errors of decoded bytes: plain, weighted."""
    exact = weights.astype(np.float64).reshape(-1, 256)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    found = gguf.quants.dequantize(raw.reshape(len(weights), -1), kind).reshape(-1, 256)
    squares = (found - exact) ** 2
    importance = np.sqrt(2 * (exact ** 2).mean(axis=1, keepdims=True) + exact ** 2)
    plain = np.sqrt(squares.sum() / (exact ** 2).sum())
    return plain, np.sqrt((importance * squares).sum() / (importance * exact ** 2).sum())


def compare(godwit, work, weights, name):
    """A row of (plain errors, ratios) per type, and what is wrong."""
    source = work / "weights.gguf"
    write_model(source, weights)
    quantize = llama_cpp()
    rows, wrong = {}, []
    for type_name in FILE_TYPES:
        kind = gguf.GGMLQuantizationType[type_name]
        ours = godwit_bytes(godwit, source, work, kind)
        theirs = peer_bytes(quantize, weights, kind)
        mine, other = errors(weights, ours, kind), errors(weights, theirs, kind)
        rows[type_name] = (mine, other)
        for label, a, b in zip(("plain", "weighted"), mine, other):
            if a > TOLERANCE * b:
                wrong.append(f"{type_name} on {name}: {label} error {a:.5f}, llama.cpp's {b:.5f}")
        if type_name in SAME_BYTES and not np.array_equal(ours, theirs):
            wrong.append(f"{type_name} on {name}: not the bytes of llama.cpp")
    return rows, wrong


def bits(type_name):
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[type_name]]
    return 8 * size / block


def cells(mine, other):
    """Both plain errors, and the ratio of the weighted ones: what they lose may be nothing."""
    ratio = f"{mine[1] / other[1]:.3f}" if other[1] > 0 else "-"
    return f" {100 * mine[0]:.3g} % | {100 * other[0]:.3g} % | {ratio} |"


def print_table(tables):
    titles = "".join(f" {name} | llama.cpp | weighted, ratio |" for name in tables)
    print(f"| type | bits |{titles}")
    print("|---|---|" + "---|---|---|" * len(tables))
    for type_name in FILE_TYPES:
        row = "".join(cells(*rows[type_name]) for rows in tables.values())
        print(f"| {type_name} | {bits(type_name):.4g} |{row}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--godwit", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--model", help="GGUF file whose token_embd.weight is a data set as well")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    tables, wrong = {}, []
    for name, weights in data_sets(arguments.model):
        tables[name], found = compare(arguments.godwit, arguments.work, weights, name)
        wrong += found
    print_table(tables)
    for line in wrong:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
