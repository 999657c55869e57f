#!/usr/bin/env python3
"""Makes tests/fixtures/chat: chat templates, conversations, and what jinja2 renders from them under
the settings of Transformers' apply_chat_template.

usage: make_chat_fixture.py                        every fixture anew, with the templates it holds
       make_chat_fixture.py --add NAME FILE        adds a template from a .gguf or .jinja file
                            [--origin TEXT] [--bos TEXT] [--eos TEXT]

Needs jinja2, and gguf for .gguf files (tools/requirements.txt).
  conversations.json  what every template is tried with (tools/chat_conversations.py)
  <model>.json   a template with its tokens, and per conversation the text or the error
  language.json  small templates for the language itself (tools/chat_language_cases.py)
"""
import argparse
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

from chat_conversations import CONVERSATIONS
from chat_language_cases import LANGUAGE_CASES, VARIABLES

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "chat"
LANGUAGE = "language.json"
SHARED = "conversations.json"
# What strftime_now takes for now; 1722000896 in seconds since 1970, UTC.
NOW = datetime.datetime(2024, 7, 26, 13, 34, 56)


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant writes; Transformers renders its content."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_content"), [], [], body).set_lineno(line)

    def _content(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, variables):
    """{"expected": text}, or {"error": message} where jinja2 raises."""
    try:
        return {"expected": environment().from_string(source).render(**variables)}
    except RecursionError:
        return {"error": "RecursionError"}
    except Exception as error:  # whatever a template can raise is a result here
        return {"error": f"{type(error).__name__}: {error}"}


def template_variables(fixture, conversation):
    variables = {key: fixture[key] for key in ("bos_token", "eos_token") if fixture[key]}
    variables.update(documents=None, **conversation.get("extra", {}))
    variables.update(messages=conversation["messages"], tools=conversation.get("tools"),
                     add_generation_prompt=conversation.get("add_generation_prompt", True))
    return variables


def model_fixture(fixture):
    """The fixture of a template, rendered anew."""
    cases = [{"name": conversation["name"]} | render(fixture["template"], template_variables(fixture, conversation))
             for conversation in CONVERSATIONS]
    return fixture | {"cases": cases}


def language_fixture():
    cases = [{"template": source} | render(source, {"messages": [], "tools": None,
                                                    "documents": None,
                                                    "add_generation_prompt": True} | VARIABLES)
             for source in LANGUAGE_CASES]
    return {"variables": VARIABLES, "cases": cases}


def fixtures():
    """Each file's name and content, rendered anew."""
    for path in sorted(FIXTURES.glob("*.json")):
        if path.name not in (LANGUAGE, SHARED):
            yield path, model_fixture(json.loads(path.read_text()))
    yield FIXTURES / SHARED, {"cases": CONVERSATIONS}
    yield FIXTURES / LANGUAGE, language_fixture()


def as_text(fixture):
    return json.dumps(fixture, ensure_ascii=True, indent=1) + "\n"


def from_gguf(path):
    import gguf
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()

    def token(kind):
        field = fields.get(f"tokenizer.ggml.{kind}_token_id")
        return tokens[field.contents()] if field else ""

    return {"template": fields["tokenizer.chat_template"].contents(), "bos_token": token("bos"),
            "eos_token": token("eos")}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", nargs=2, metavar=("NAME", "FILE"))
    parser.add_argument("--origin", default="")
    parser.add_argument("--bos")
    parser.add_argument("--eos")
    args = parser.parse_args()
    FIXTURES.mkdir(parents=True, exist_ok=True)
    if args.add:
        name, path = args.add
        fixture = (from_gguf(path) if path.endswith(".gguf") else
                   {"template": pathlib.Path(path).read_text(), "bos_token": "", "eos_token": ""})
        for key, value in (("bos_token", args.bos), ("eos_token", args.eos)):
            fixture[key] = fixture[key] if value is None else value
        fixture = {"model": name, "origin": args.origin} | fixture
        (FIXTURES / f"{name}.json").write_text(as_text(model_fixture(fixture)))
        return
    for path, fixture in fixtures():
        path.write_text(as_text(fixture))
        errors = sum("error" in case for case in fixture["cases"])
        print(f"{path.name}: {len(fixture['cases'])} cases, {errors} of them errors")


if __name__ == "__main__":
    sys.exit(main())
