#!/usr/bin/env python3
"""Makes docs/COMPATIBILITY.md from the tests of a build: a cell says yes where a test of that name
is registered, so the table cannot promise what nothing checks.

usage: make_compatibility.py [--check] BUILD_DIRECTORY

--check compares with the committed file instead of writing it. Python's standard library only.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs/COMPATIBILITY.md"
# Names of architectures that tests cannot have.
SPELLED = {"gptoss": "gpt-oss"}
ISAS = ("generic", "avx2", "avx512vnni")

HEAD = """# Compatibility

What Godwit runs, and the test behind each cell. Made by `tools/make_compatibility.py` from the list of
tests of a build; a test compares it with the committed file. Types, architectures and tokenizers are
independent of each other: a file runs when its types, its architecture and its tokenizer are each
in their table. Anything else is refused with one line that names what is missing.

## Types and architectures

A `+` under an architecture: every step of a synthetic model of that architecture and type, on the
cpu backend, lies within its derived bound of the double-precision reference
(`StepsOfTypeAndArchitecture.LieWithinTheirBoundsOnTheCpu`). *decoded*: bit for bit as the `gguf`
package, or llama.cpp where that lacks the type (`EveryFormat.DecodesTheFixtureBitForBit`,
`tests/conformance/quant_fixture.py`). *kernels*: g portable, 2 AVX2, 5 AVX-512 VNNI, all giving the
same bits (`MatVec.MatchesDoubleAndReferenceOverShapes`). *encoded*: `godwit quantize` writes it
(`Encoders.StayWithinTheErrorOfTheirType`, `tests/conformance/quantize.py`).
"""


def registered_tests(build):
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                           capture_output=True, text=True, check=True).stdout
    # Behind two spaces and a # stands how GoogleTest prints the parameter.
    return [test["name"].split("  # ")[0] for test in json.loads(shown)["tests"]]


def parameters(tests, name):
    """What instances of a parametrised test are called, in order."""
    pattern = re.compile(r"(?:\w+/)?" + re.escape(name) + r"/(.+)")
    found = (pattern.fullmatch(test) for test in tests)
    return [match[1].strip('"') for match in found if match]


def type_table(tests):
    pairs = parameters(tests, "StepsOfTypeAndArchitecture.LieWithinTheirBoundsOnTheCpu")
    decoded = parameters(tests, "EveryFormat.DecodesTheFixtureBitForBit")
    kernels = parameters(tests, "MatVec.MatchesDoubleAndReferenceOverShapes")
    encoded = parameters(tests, "Encoders.StayWithinTheErrorOfTheirType")
    architectures = sorted({pair.rsplit("_", 1)[1] for pair in pairs})
    rows = [["type", "decoded", "kernels", "encoded", *(SPELLED.get(a, a) for a in architectures)]]
    for name in decoded:
        isas = [isa for isa in ISAS if f"{name.lower()}_{isa}" in kernels]
        marks = "".join({"generic": "g", "avx2": "2", "avx512vnni": "5"}[isa] for isa in isas)
        rows.append([name, "+", marks or "-", "+" if name in encoded else "-",
                     *("+" if f"{name}_{a}" in pairs else "-" for a in architectures)])
    return rows


def model_table(tests):
    cases = parameters(tests, "Transformers.LogitsOfEveryTokenAgree")
    models = sorted({re.sub(r"_(reference|cpu)_rows\d+$", "", case) for case in cases})
    described = {}
    for folder in ("transformers", "transformers_moe"):
        text = (ROOT / "tests/fixtures" / folder / "README.md").read_text()
        described |= dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.M))
    rows = [["tiny model", "architecture", "features", "backends"]]
    for model in models:
        backends = sorted({case.split("_")[-2] for case in cases if case.startswith(model + "_")})
        architecture, features = described[model].split(" | ", 1)
        features = features.split(" | ")[-1]  # some tables count tokens in between
        rows.append([f"`{model}`", f"`{architecture}`", features, ", ".join(backends)])
    return rows


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def document(tests):
    return "\n".join([
        HEAD, markdown(type_table(tests)),
        "## Architectures against transformers and llama.cpp\n",
        "The logits of every token within 1e-4 of transformers', as one prompt and step by step\n"
        "(`Transformers.LogitsOfEveryTokenAgree`); llama.cpp reads the same files\n"
        "(`tests/conformance/fixture_peers.py`).\n",
        markdown(model_table(tests)),
        "Real files: SmolLM2-135M (`llama`), Qwen2.5-Coder-1.5B (`qwen2`) and Gemma 3 270M (`gemma3`),\n"
        "greedy text and distributions against llama.cpp: `tests/conformance/llama_cpp.py`.\n",
        "## Tokenizers and templates\n",
        "Vocabularies, pre-tokenizers and what was compared: [TOKENIZERS.md](TOKENIZERS.md).\n"
        "Chat templates: `tests/fixtures/chat/README.md`.\n",
    ])


def main(arguments):
    check = "--check" in arguments
    (build,) = [argument for argument in arguments if argument != "--check"]
    text = document(registered_tests(build))
    if not check:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET.relative_to(ROOT)} is not what the tests of {build} say; make it anew with\n"
          f"  tools/make_compatibility.py {build}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
