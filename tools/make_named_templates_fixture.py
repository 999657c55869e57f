#!/usr/bin/env python3
"""Makes tests/fixtures/named_templates.json: what llama.cpp's formatters of each name write.

usage: make_named_templates_fixture.py [--check]

The formatters are the function llama_chat_apply_template of llama.cpp, taken from the package
xllamacpp (tools/requirements.txt). Conversations are those of chat_conversations.py that have no
tools and plain text contents. --check: compares with the committed file instead; status 1 where
one differs.
"""
import ctypes
import json
import pathlib
import sys

import xllamacpp

from chat_conversations import CONVERSATIONS

FIXTURE = (pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" /
           "named_templates.json")
# These are not offered: their models need images.
LEFT_OUT = {"deepseek-ocr", "hunyuan-vl"}
# Roles that formatters without a rule for them leave out or take for the assistant's.
MORE = [
    {"name": "an unknown role last",
     "messages": [{"role": "user", "content": "Hi"}, {"role": "critic", "content": " Hm\n"}]},
    {"name": "two system messages",
     "messages": [{"role": "system", "content": " a "}, {"role": "system", "content": "b\n"},
                  {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}]},
    {"name": "system last",
     "messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]},
    {"name": "tool's answer",
     "messages": [{"role": "user", "content": "a"},
                  {"role": "assistant_tool_call", "content": "f()"},
                  {"role": "tool", "content": " 7 "}, {"role": "assistant", "content": " ok "}]},
    {"name": "spaces of every kind",
     "messages": [{"role": "user", "content": "\v\f\t a \u00a0\u2003\x1c"},
                  {"role": "assistant", "content": "\x1f b \r\n\u3000"}]},
]


class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


class Peer:
    def __init__(self):
        self.library = ctypes.CDLL(str(next(pathlib.Path(xllamacpp.__file__).parent.glob("*.so"))))
        self.library.llama_chat_apply_template.argtypes = [
            ctypes.c_char_p, ctypes.POINTER(Message), ctypes.c_size_t, ctypes.c_bool,
            ctypes.c_char_p, ctypes.c_int32]

    def names(self):
        output = (ctypes.c_char_p * 256)()
        count = self.library.llama_chat_builtin_templates(output, ctypes.c_size_t(256))
        return sorted({output[i].decode() for i in range(count)} - LEFT_OUT)

    def prompt(self, name, messages, ask):
        array = (Message * len(messages))(*(
            Message(m["role"].encode(), m["content"].encode()) for m in messages))
        arguments = (name.encode(), array, len(messages), ask)
        size = self.library.llama_chat_apply_template(*arguments, None, 0)
        if size < 0:
            raise RuntimeError(f"llama.cpp does not apply '{name}'")
        buffer = ctypes.create_string_buffer(size + 1)
        self.library.llama_chat_apply_template(*arguments, buffer, size + 1)
        return buffer.raw[:size].decode()


def conversations():
    """Those that a C array of roles and texts can hold."""
    for conversation in CONVERSATIONS + MORE:
        plain = all(set(m) == {"role", "content"} and isinstance(m["content"], str)
                    and "\0" not in m["content"] for m in conversation["messages"])
        if plain and conversation["messages"] and "tools" not in conversation:
            yield conversation


def fixture():
    peer = Peer()
    talks = [{"name": c["name"], "messages": c["messages"],
              "add_generation_prompt": c.get("add_generation_prompt", True)}
             for c in conversations()]
    prompts = {name: [peer.prompt(name, t["messages"], t["add_generation_prompt"]) for t in talks]
               for name in peer.names()}
    return {"llama_cpp": f"xllamacpp {xllamacpp.__version__}", "conversations": talks,
            "prompts": prompts}


def main():
    made = fixture()
    if "--check" not in sys.argv[1:]:
        FIXTURE.write_text(json.dumps(made, ensure_ascii=True, indent=1) + "\n")
        print(f"{FIXTURE.name}: {len(made['prompts'])} names, "
              f"{len(made['conversations'])} conversations each")
        return 0
    wrong = [key for key in ("conversations", "prompts")
             if json.loads(FIXTURE.read_text())[key] != made[key]]
    print(f"{len(made['prompts'])} names, differences: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
