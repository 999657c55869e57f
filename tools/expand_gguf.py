#!/usr/bin/env python3
"""Copies a GGUF file with every tensor expanded to F32: the same weights, without blocks.

usage: expand_gguf.py INPUT.gguf OUTPUT.gguf

Comparisons use such copies where a peer would round activations for a quantised type.
"""
import pathlib
import sys

import gguf
import numpy as np

# Set anew by the writer, or wrong for the copy.
DROPPED = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")


def copy_metadata(reader, writer):
    for name, field in reader.fields.items():
        if name.startswith(DROPPED):
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, element)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def expand(source, target):
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    # Written under another name first: what has the right name is complete.
    unfinished = target.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, architecture)
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        # GGUF counts dimensions from the fastest, numpy from the slowest.
        shape = [int(n) for n in reversed(tensor.shape)]
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), 4 * int(np.prod(shape)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(np.ascontiguousarray(weights, dtype=np.float32))
    writer.close()
    unfinished.rename(target)


def main(arguments):
    if len(arguments) != 2 or any(a.startswith("-") for a in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    expand(pathlib.Path(arguments[0]), pathlib.Path(arguments[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
