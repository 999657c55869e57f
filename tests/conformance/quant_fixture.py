#!/usr/bin/env python3
"""Checks that tests/fixtures/quant holds, byte for byte, what tools/make_quant_fixture.py makes
with the `gguf` package installed here: that the decoders are compared with the package and not
with a file somebody touched. And that llama.cpp, in the package xllamacpp, decodes the blocks to the
same weights, bit for bit but for the payload of NaNs. Exit code 0: they agree.

    .venv/bin/python tests/conformance/quant_fixture.py
"""

import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True


def differs_from_llama_cpp(maker, name: str, fixture: bytes) -> bool:
    import numpy as np

    _, n_blocks, block_bytes, block_weights = struct.unpack("<4I", fixture[8:24])
    if block_weights == 1:
        return False
    end = 24 + n_blocks * block_bytes
    blocks = np.frombuffer(fixture[24:end], dtype=np.uint8).reshape(n_blocks, block_bytes)
    expected = maker.llama_cpp_weights(name, blocks, block_weights)
    found = np.frombuffer(fixture[end:], dtype="<f4")
    same = (expected.view("<u4") == found.view("<u4")) | (np.isnan(expected) & np.isnan(found))
    if same.all():
        return False
    at = int(np.argmin(same))
    print(f"quant_fixture: {name.lower()}.bin: weight {at}: expected {expected[at]} as decoded by "
          f"llama.cpp, found {found[at]}", file=sys.stderr)
    return True


def main() -> int:
    try:
        import make_quant_fixture as maker
        import xllamacpp  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"quant_fixture: expected the packages gguf, numpy and xllamacpp, found: {error}",
              file=sys.stderr)
        return 1
    bad = 0
    for name in maker.SCALE_OFFSETS:
        path = maker.FOLDER / f"{name.lower()}.bin"
        made = maker.fixture(name)
        committed = path.read_bytes() if path.exists() else b""
        if made != committed:
            at = next((i for i, (a, b) in enumerate(zip(made, committed)) if a != b),
                      min(len(made), len(committed)))
            print(f"quant_fixture: {path.name}: expected {len(made)} bytes as made by "
                  f"tools/make_quant_fixture.py, found {len(committed)}; first difference at byte {at}",
                  file=sys.stderr)
            bad += 1
        bad += differs_from_llama_cpp(maker, name, made)
    known = {f"{name.lower()}.bin" for name in maker.SCALE_OFFSETS}
    for path in sorted(maker.FOLDER.glob("*.bin")):
        if path.name not in known:
            print(f"quant_fixture: {path.name}: nothing makes this file", file=sys.stderr)
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
