#!/usr/bin/env python3
"""Godwit's GGUF reader and writer against the `gguf` package's.

The package writes a file with every metadata type and several tensor types; Godwit reads it and
writes it again. The copy must be the same byte for byte, and the package must read it as it reads
the original.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy


def write_original(path, alignment):
    writer = gguf.GGUFWriter(path, "llama")
    if alignment != gguf.GGUF_DEFAULT_ALIGNMENT:
        writer.add_custom_alignment(alignment)
    for name, value in {"uint8": 255, "int8": -1, "uint16": 65535, "int16": -2, "uint32": 7,
                        "int32": -3, "uint64": 2**64 - 1, "int64": -4, "float32": 1.5,
                        "float64": 0.1, "bool": True}.items():
        getattr(writer, f"add_{name}")(f"scalar.{name}", value)
    writer.add_string("scalar.string", "Zug\u00e4nge \U0001f426")
    writer.add_array("array.i32", [1, -2, 3])
    writer.add_array("array.f32", [0.5, -1.25])
    writer.add_array("array.bool", [True, False])
    writer.add_array("array.string", ["a", "", "\u00e9"])
    numbers = numpy.random.default_rng(1)
    floats = numbers.standard_normal((6, 64), dtype=numpy.float32)
    writer.add_tensor("f32", floats)
    writer.add_tensor("f16", floats.astype(numpy.float16)[:3, :33])
    writer.add_tensor("i8", numbers.integers(-128, 127, (5,), dtype=numpy.int8))
    for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
        writer.add_tensor(kind.name, gguf.quants.quantize(floats, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def content(path):
    """What the package's reader makes of a file, without where it lies."""
    reader = gguf.GGUFReader(path)
    fields = {name: (field.types, field.contents()) for name, field in reader.fields.items()}
    tensors = [(t.name, t.tensor_type, t.shape.tolist(), t.data.tobytes()) for t in reader.tensors]
    return fields, tensors


def compare(rewrite, folder, alignment):
    original = folder / f"original-{alignment}.gguf"
    copy = folder / f"copy-{alignment}.gguf"
    write_original(original, alignment)
    subprocess.run([rewrite, original, copy], check=True)
    if content(original) != content(copy):
        return f"alignment {alignment}: the package reads the copy differently"
    if original.read_bytes() != copy.read_bytes():
        return f"alignment {alignment}: the copy differs from the package's file"
    print(f"alignment {alignment}: {copy.stat().st_size} bytes, identical")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rewrite", help="path of godwit_gguf_rewrite")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for alignment in (32, 256):
            if problem := compare(arguments.rewrite, pathlib.Path(folder), alignment):
                print(f"gguf_writer: {problem}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
