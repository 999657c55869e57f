#!/usr/bin/env python3
"""Checks that src/quant/codebooks.h is, byte for byte, what tools/make_codebooks.py makes with the
`gguf` package installed here. Exit code 0: it is.

    .venv/bin/python tests/conformance/codebooks.py
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True


def main() -> int:
    try:
        import make_codebooks as maker
    except ModuleNotFoundError as error:
        print(f"codebooks: expected the packages gguf and numpy, found: {error}", file=sys.stderr)
        return 1
    made = maker.header().splitlines()
    committed = maker.FILE.read_text().splitlines()
    if made == committed:
        return 0
    line = next((i for i, (a, b) in enumerate(zip(made, committed)) if a != b),
                min(len(made), len(committed)))
    print(f"codebooks: {maker.FILE.name}: expected {len(made)} lines as made by "
          f"tools/make_codebooks.py, found {len(committed)}; first difference in line {line + 1}",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
