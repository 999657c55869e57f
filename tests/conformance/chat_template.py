#!/usr/bin/env python3
"""Renders the chat fixtures anew with jinja2 and compares them with the committed ones, so that
they cannot drift from what they claim to be. Exit code 1 where one differs."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import make_chat_fixture  # noqa: E402


def main():
    n_cases = n_wrong = 0
    for path, fixture in make_chat_fixture.fixtures():
        committed = json.loads(path.read_text())
        for old, new in zip(committed["cases"], fixture["cases"], strict=False):
            n_cases += 1
            if old != new:
                n_wrong += 1
                print(f"{path.name}: {new.get('name', new.get('template'))!r}: "
                      f"committed {old.get('expected', old.get('error'))!r}, "
                      f"jinja2 {new.get('expected', new.get('error'))!r}")
        if {**committed, "cases": len(committed["cases"])} != {**fixture,
                                                               "cases": len(fixture["cases"])}:
            n_wrong += 1
            print(f"{path.name}: differs beside its cases")
    print(f"{n_cases} cases, {n_wrong} differences")
    return 1 if n_wrong or n_cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
