#!/usr/bin/env python3
"""Makes tests/fixtures/quant/<type>.bin: blocks with random and extreme content, and the weights
that the `gguf` package (PyPI) decodes them to. quant/formats_test.cpp compares Godwit's decoders
with them bit for bit, but for the payload of NaNs; tests/conformance/quant_fixture.py checks that the files are what this
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

import ctypes
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
    "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ2_XXS": [0], "IQ2_XS": [0], "IQ3_XXS": [0], "IQ1_S": [0], "IQ4_NL": [0], "IQ3_S": [0],
    "IQ2_S": [0], "IQ4_XS": [0], "IQ1_M": [], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [],
    "NVFP4": [], "Q1_0": [0], "Q2_0": [0],
}

# Byte offsets of 8-bit scales.
BYTE_SCALE_OFFSETS = {"MXFP4": [0], "NVFP4": [0, 1, 2, 3]}

# Geometry of the types that the package cannot decode: llama.cpp's decoder, in the package
# xllamacpp, says what they mean. (Id, weights and bytes of a block.)
LLAMA_CPP_TYPES = {"Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18)}

# Zero, the smallest and largest subnormal, the smallest normal, 1, and the largest finite number.
EXTREME_F16 = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF]
NOT_FINITE_F16 = [0x7C00, 0xFC00, 0x7E01, 0xFFFF]
# Of E8M0 and of E4M3: the ends of their subnormal, normal and NaN codes, and those of bit 7 set.
EXTREME_BYTES = [0x00, 0x01, 0x02, 0x07, 0x08, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]
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


def write_iq1_m_scale(block: np.ndarray, bits: int) -> None:
    """IQ1_M has a nibble of its scale at the top of each of its last four 16-bit words."""
    for k in range(4):
        block[49 + 2 * k] = (block[49 + 2 * k] & 0x0F) | ((bits >> (4 * k)) & 0x0F) << 4


def scaled_blocks(name: str, block_bytes: int, n_blocks: int) -> np.ndarray:
    """Random bits; the first two blocks have all codes 0 and all codes set; the scales go through
    the extremes (two scales at different pace), then are random and finite; in the last blocks they
    are not finite. The last two blocks are nothing but zeros and ones."""
    blocks = random_bytes(name, n_blocks * block_bytes).reshape(n_blocks, block_bytes)
    blocks[0], blocks[1] = 0x00, 0xFF
    n_extremes = len(EXTREME_F16)
    for which, offset in enumerate(SCALE_OFFSETS[name]):
        scales = blocks[:, offset : offset + 2].copy().view("<u2")[:, 0]
        scales = finite(scales, 0x7C00).astype("<u2")
        for i in range(n_blocks * 3 // 4):
            scales[i] = EXTREME_F16[(i * (3 if which else 1) + 6) % n_extremes]
        scales[-6:-2] = np.roll(NOT_FINITE_F16, which)
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(n_blocks, 2)
    for which, offset in enumerate(BYTE_SCALE_OFFSETS.get(name, [])):
        for i in range(n_blocks * 3 // 4):
            blocks[i, offset] = EXTREME_BYTES[(i + 3 * which) % len(EXTREME_BYTES)]
    if name == "IQ1_M":
        for i in range(n_blocks * 3 // 4):
            write_iq1_m_scale(blocks[i], EXTREME_F16[(i + 6) % n_extremes])
        for block, bits in zip(blocks[-6:-2], NOT_FINITE_F16):
            write_iq1_m_scale(block, bits)
    blocks[-2], blocks[-1] = 0x00, 0xFF
    return blocks


def llama_cpp_weights(name: str, blocks: np.ndarray, block_weights: int) -> np.ndarray:
    """What llama.cpp decodes blocks to."""
    import xllamacpp

    library = ctypes.CDLL(next(Path(xllamacpp.__file__).parent.glob("xllamacpp.*.so")))
    weights = np.empty(len(blocks) * block_weights, dtype="<f4")
    decode = getattr(library, f"dequantize_row_{name.lower().replace('_k', '_K')}")
    decode.restype = None
    decode(blocks.ctypes.data_as(ctypes.c_void_p), weights.ctypes.data_as(ctypes.c_void_p),
           ctypes.c_int64(weights.size))
    return weights


def fixture(name: str) -> bytes:
    if name in LLAMA_CPP_TYPES:
        type_id, block_weights, block_bytes = LLAMA_CPP_TYPES[name]
        blocks = scaled_blocks(name, block_bytes, 96)
        weights = llama_cpp_weights(name, blocks, block_weights)
    else:
        type_id = GGMLQuantizationType[name]
        block_weights, block_bytes = GGML_QUANT_SIZES[type_id]
        if block_weights == 1:
            blocks = scalar_blocks(name)
        else:
            blocks = scaled_blocks(name, block_bytes, 32 if block_weights == 256 else 96)
        with np.errstate(all="ignore"):
            weights = dequantize(blocks, type_id).astype("<f4")
    weights[np.isnan(weights)] = np.nan  # one payload: it depends on the processor
    header = b"gwquant1" + struct.pack("<4I", type_id, len(blocks), block_bytes, block_weights)
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
