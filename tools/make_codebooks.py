#!/usr/bin/env python3
"""Makes src/quant/codebooks.h: the tables that the IQ types and the FP4 types look their weights up
in, from those of the `gguf` package (PyPI). tests/conformance/codebooks.py checks that the file is
what this script makes.

    .venv/bin/python tools/make_codebooks.py [FILE]

A codebook is a list of points of 8 (IQ1, IQ2) or 4 (IQ3) weights, each at one of a few levels. It is
written as the package stores it, a code of 2 or 3 bits per weight; quant/grids.h expands it.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import quants

FILE = Path(__file__).resolve().parent.parent / "src" / "quant" / "codebooks.h"

HEADER = """\
// The tables that the IQ and FP4 types look their weights up in. Made by tools/make_codebooks.py
// from those of the `gguf` package: change the script, not this file. Kernels and decoders use them
// through quant/grids.h and quant/value_tables.h, which expand them and work on the device too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::quant {

// Points of a codebook. The weight i of a point is at the level whose number is in its bits
// 2i+1..2i (points of 8 weights) or 3i+2..3i (points of 4).
template <size_t N>
struct CodeTable {
  uint16_t codes[N];
};

template <size_t N>
struct ValueTable {
  int8_t values[N];
};

// clang-format off
"""

FOOTER = """
// clang-format on

}  // namespace godwit::quant
"""


def value_table(name: str, comment: str, values) -> str:
    numbers = ", ".join(str(int(v)) for v in values)
    return (f"\n// {comment}\ninline constexpr ValueTable<{len(values)}> {name} = "
            f"{{{{\n    {numbers},\n}}}};\n")


def code_table(name: str, comment: str, source) -> str:
    """The codes of the package's expanded grid: the number of the level of every weight."""
    source.init_grid()
    n_points, size = source.grid_shape
    bits = {8: 2, 4: 3}[size]
    points = source.grid.reshape(n_points, size)
    levels = np.array(source.grid_map, dtype=np.float32)
    numbers = np.argmax(points[..., None] == levels, axis=-1)
    if not np.array_equal(levels[numbers], points):
        sys.exit(f"make_codebooks: {name}: a weight of the package's grid is at none of its levels")
    codes = (numbers << (bits * np.arange(size))).sum(axis=-1)
    lines = [", ".join(f"0x{code:04x}" for code in codes[i : i + 12]) + ","
             for i in range(0, n_points, 12)]
    body = "\n".join("    " + line for line in lines)
    return (f"\n// {comment}\ninline constexpr CodeTable<{n_points}> {name} = {{{{\n{body}\n}}}};\n")


def header() -> str:
    parts = [HEADER]
    parts.append(value_table("kIq1Levels", "Levels of IQ1_S and IQ1_M, before the shift.",
                             quants.IQ1_S.grid_map))
    parts.append(value_table("kIq2Levels", "Levels of the magnitudes of IQ2_XXS, IQ2_XS and IQ2_S.",
                             quants.IQ2_XXS.grid_map))
    parts.append(value_table("kIq3XxsLevels", "Levels of the magnitudes of IQ3_XXS.",
                             quants.IQ3_XXS.grid_map))
    parts.append(value_table("kIq3SLevels", "Levels of the magnitudes of IQ3_S.",
                             quants.IQ3_S.grid_map))
    parts.append(value_table("kIq4Values", "Values of the 4-bit codes of IQ4_NL and IQ4_XS.",
                             quants.IQ4_NL.kvalues))
    parts.append(value_table("kFp4Values", "Twice the values of the FP4 (E2M1) codes of MXFP4, NVFP4.",
                             quants.MXFP4.kvalues))
    for name, comment, source in [
        ("kIq1Codes", "Points of IQ1_S and IQ1_M, 8 weights each.", quants.IQ1_S),
        ("kIq2XxsCodes", "Points of IQ2_XXS, 8 magnitudes each.", quants.IQ2_XXS),
        ("kIq2XsCodes", "Points of IQ2_XS, 8 magnitudes each.", quants.IQ2_XS),
        ("kIq2SCodes", "Points of IQ2_S, 8 magnitudes each.", quants.IQ2_S),
        ("kIq3XxsCodes", "Points of IQ3_XXS, 4 magnitudes each.", quants.IQ3_XXS),
        ("kIq3SCodes", "Points of IQ3_S, 4 magnitudes each.", quants.IQ3_S),
    ]:
        parts.append(code_table(name, comment, source))
    parts.append(FOOTER)
    return "".join(parts)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    path.write_text(header())
    print(f"{path.name}  {len(header().splitlines())} lines", file=sys.stderr)


if __name__ == "__main__":
    main()
