#!/usr/bin/env python3
"""Makes tests/fixtures/quant/<type>.bin: blocks with random and extreme content, and the weights
that the `gguf` package (PyPI) decodes them to. quant/formats_test.cpp compares Godwit's decoders
with them bit for bit; tests/conformance/quant_fixture.py checks that the files are what this
script makes.

    .venv/bin/python tools/make_quant_fixture.py [FOLDER]

Layout of a file, little endian:

    offset        bytes                 content
    0             8                     "gwquant1"
    8             4                     type id, as in GGUF
    12            4                     n, the number of blocks
    16            4                     B, bytes of a block
    20            4                     W, weights of a block
    24            n * B                 the blocks
    24 + n * B    n * W * 4             their weights, f32
"""

import hashlib
import struct
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "quant"

# Byte offsets of the binary16 scales in a block of each type; of a scalar type, of the weight.
SCALE_OFFSETS = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
    "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}

# Zero, the smallest and largest subnormal, the smallest normal, 1, and the largest finite number.
EXTREME_F16 = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF]
EXTREME_F32 = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0xFF7FFFFF,
               0x7F800000, 0xFF800000]
EXTREME_BF16 = [bits >> 16 for bits in EXTREME_F32]


def random_bytes(name: str, n: int) -> np.ndarray:
    """The same bytes in every version of every library."""
    return np.frombuffer(hashlib.shake_256(name.encode()).digest(n), dtype=np.uint8).copy()


def finite(bits: np.ndarray, exponent: int) -> np.ndarray:
    """Clears one exponent bit of infinities and NaNs: their payload is nobody's contract."""
    return np.where((bits & exponent) == exponent, bits ^ (exponent & -exponent), bits)


def scalar_blocks(name: str) -> np.ndarray:
    dtype, extremes, exponent = {
        "F32": ("<u4", EXTREME_F32, 0x7F800000),
        "F16": ("<u2", EXTREME_F16 + [0x7C00, 0xFC00], 0x7C00),
        "BF16": ("<u2", EXTREME_BF16, 0x7F80),
    }[name]
    bits = random_bytes(name, 1024 * np.dtype(dtype).itemsize).view(dtype)
    bits = finite(bits, exponent).astype(dtype)
    bits[: len(extremes)] = extremes
    return bits.view(np.uint8).reshape(1024, -1)


def scaled_blocks(name: str, block_bytes: int, n_blocks: int) -> np.ndarray:
    """Random bits; the first two blocks have all codes 0 and all codes set; the scales go through
    the extremes (two scales at different pace), then are random and finite."""
    blocks = random_bytes(name, n_blocks * block_bytes).reshape(n_blocks, block_bytes)
    blocks[0], blocks[1] = 0x00, 0xFF
    n_extremes = len(EXTREME_F16)
    for which, offset in enumerate(SCALE_OFFSETS[name]):
        scales = blocks[:, offset : offset + 2].copy().view("<u2")[:, 0]
        scales = finite(scales, 0x7C00).astype("<u2")
        for i in range(n_blocks * 3 // 4):
            scales[i] = EXTREME_F16[(i * (3 if which else 1) + 6) % n_extremes]
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(n_blocks, 2)
    return blocks


def fixture(name: str) -> bytes:
    qtype = GGMLQuantizationType[name]
    block_weights, block_bytes = GGML_QUANT_SIZES[qtype]
    if block_weights == 1:
        blocks = scalar_blocks(name)
    else:
        blocks = scaled_blocks(name, block_bytes, 24 if block_weights == 256 else 96)
    weights = dequantize(blocks, qtype).astype("<f4", copy=False)
    header = b"gwquant1" + struct.pack("<4I", qtype, len(blocks), block_bytes, block_weights)
    return header + blocks.tobytes() + weights.tobytes()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCALE_OFFSETS:
        content = fixture(name)
        (folder / f"{name.lower()}.bin").write_bytes(content)
        print(f"{name.lower()}.bin  {len(content)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
