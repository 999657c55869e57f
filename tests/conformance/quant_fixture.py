#!/usr/bin/env python3
"""Checks that tests/fixtures/quant holds, byte for byte, what tools/make_quant_fixture.py makes
with the `gguf` package installed here: that the decoders are compared with the package and not
with a file somebody touched. Exit code 0: they agree.

    .venv/bin/python tests/conformance/quant_fixture.py
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True


def main() -> int:
    try:
        import make_quant_fixture as maker
    except ModuleNotFoundError as error:
        print(f"quant_fixture: expected the packages gguf and numpy, found: {error}", file=sys.stderr)
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
    known = {f"{name.lower()}.bin" for name in maker.SCALE_OFFSETS}
    for path in sorted(maker.FOLDER.glob("*.bin")):
        if path.name not in known:
            print(f"quant_fixture: {path.name}: nothing makes this file", file=sys.stderr)
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
