#!/usr/bin/env python3
"""Compares what Godwit and jinja2 render from every template of a folder.

usage: compare_chat_templates.py FOLDER [--render build/ci/tests/godwit_chat_render]

FOLDER holds *.jinja files, such as models/templates of llama.cpp's sources. Every template meets
every conversation of chat_conversations.py under the settings of Transformers' apply_chat_template
(make_chat_fixture.py). Prints a row for each: SHA-256 of the template, cases, how many agree (the
same bytes, or an error on both sides), how many of those are errors. Status 1 where one differs.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys

from chat_conversations import CONVERSATIONS
from make_chat_fixture import render, template_variables

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def rendered(program, source):
    """Godwit's answers to all conversations."""
    requests = "".join(json.dumps({"template": source} | TOKENS | c) + "\n" for c in CONVERSATIONS)
    answers = subprocess.run([program], input=requests, capture_output=True, text=True, check=True,
                             env=os.environ | {"TZ": "UTC"})
    return [json.loads(line) for line in answers.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--render", default=ROOT / "build/ci/tests/godwit_chat_render")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.glob("*.jinja"))
    if not paths:
        parser.error(f"no *.jinja in {arguments.folder}")
    totals = [0, 0, 0]
    differences = []
    print("| template | sha256 | cases | agreed | of them errors |\n|---|---|---|---|---|")
    for path in paths:
        source = path.read_text()
        agreed = errors = 0
        for talk, ours in zip(CONVERSATIONS, rendered(arguments.render, source), strict=True):
            theirs = render(source, template_variables(TOKENS, talk))
            same = ("error" in ours if "error" in theirs else ours.get("text") == theirs["expected"])
            agreed += same
            errors += same and "error" in theirs
            if not same:
                differences.append(f"{path.stem}: {talk['name']}: jinja2 {theirs}, Godwit {ours}")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        print(f"| {path.stem} | {digest} | {len(CONVERSATIONS)} | {agreed} | {errors} |")
        totals = [a + b for a, b in zip(totals, (len(CONVERSATIONS), agreed, errors), strict=True)]
    print(f"| all {len(paths)} | | {totals[0]} | {totals[1]} | {totals[2]} |")
    print("\n".join(differences), file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
