"""`godwit chat` in a terminal: Ctrl-C and Ctrl-D where a person would press them.

usage: python3 terminal.py PATH_TO_GODWIT
"""
import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

GODWIT = ""
CTRL_C, CTRL_D = b"\x03", b"\x04"
DEADLINE_S = 60


class Terminal:
    """A chat with a tiny model on a pseudo-terminal."""

    def __init__(self, model, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(GODWIT, [GODWIT, "chat", "-m", str(model), "-n", "100000", "-c", "4096",
                              "--temp", "0", "--ignore-eos", *args])
        self.seen = b""
        self.wait_for(b"/help for commands")
        self.prompt()

    def prompt(self):
        """Waits until a line can be typed. The line editor takes the terminal over just before or
        after it shows its prompt, which nothing outside can see; keys in between would be lost."""
        self.wait_for(b"> ")
        time.sleep(1.0)

    def wait_for(self, text):
        """Reads until `text` has come; what came before it."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.seen:
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} did not come; the terminal shows {self.seen[-300:]!r}")
            if select.select([self.fd], [], [], 0.1)[0]:
                self.seen += os.read(self.fd, 65536)
        before, _, self.seen = self.seen.partition(text)
        return before

    def wait_for_more(self):
        if not self.seen and not select.select([self.fd], [], [], DEADLINE_S)[0]:
            raise AssertionError("nothing came")

    def type(self, keys):
        os.write(self.fd, keys)

    def exit_code(self):
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:  # the other side is closed
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("chat does not end")


class ChatInATerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = pathlib.Path(cls.folder.name) / "tiny.gguf"
        subprocess.run([GODWIT, "synth", "--shape", "tiny", "--type", "q8_0", "-o", cls.model],
                       check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_ctrl_c_while_typing_gives_the_line_up_and_the_chat_goes_on(self):
        chat = Terminal(self.model)
        chat.type(b"half a li")
        chat.type(CTRL_C)
        chat.wait_for(b"Ctrl-C again")
        chat.prompt()
        chat.type(b"/help\r")
        chat.wait_for(b"forget the conversation")
        chat.prompt()
        chat.type(b"/quit\r")
        self.assertEqual(chat.exit_code(), 0)

    def test_ctrl_c_twice_while_typing_leaves(self):
        chat = Terminal(self.model)
        chat.type(CTRL_C)
        chat.wait_for(b"Ctrl-C again")
        chat.prompt()
        chat.type(CTRL_C)
        self.assertEqual(chat.exit_code(), 130)

    def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(self):
        chat = Terminal(self.model)
        chat.type(b"go on for ever\r")
        chat.wait_for(b"go on for ever\r\n")
        chat.wait_for_more()  # the answer has begun; its 4,000 tokens take a good while longer
        chat.type(CTRL_C)
        chat.prompt()
        chat.type(b"/stats\r")
        chat.wait_for(b"ended by cancelled")
        chat.prompt()
        chat.type(CTRL_D)
        self.assertEqual(chat.exit_code(), 0)

    def slow_question(self, state):
        """A chat with --state: one answer, stopped, and a question that is one call of seconds,
        which the first Ctrl-C cannot stop."""
        chat = Terminal(self.model, "--state", str(state), "--backend", "reference", "-ub", "4000")
        chat.type(b"the first\r")
        chat.wait_for(b"the first\r\n")
        chat.wait_for_more()
        chat.type(CTRL_C)
        chat.prompt()
        chat.type(b"/save\r")
        chat.wait_for(b"saved to")
        chat.prompt()
        chat.type(b"w " * 1700 + b"\r")
        time.sleep(0.5)
        return chat

    def interrupt(self, chat, times):
        """Signals of one kind do not queue: one is taken before the next."""
        for _ in range(times):
            chat.type(CTRL_C)
            time.sleep(0.3)

    def take_up(self, state, *args):
        """Goes on with what was saved: the first question and its answer."""
        chat = Terminal(self.model, "--state", str(state), *args)
        chat.type(b"/undo\r")
        chat.wait_for(b"taken back")
        chat.prompt()
        chat.type(b"/undo\r")
        chat.wait_for(b"nothing to take back")
        chat.prompt()
        chat.type(CTRL_D)
        self.assertEqual(chat.exit_code(), 0)

    def test_the_second_ctrl_c_leaves_and_keeps_the_conversation(self):
        state = pathlib.Path(self.folder.name) / "left.state"
        chat = self.slow_question(state)
        before = state.stat().st_mtime_ns
        self.interrupt(chat, 2)
        self.assertEqual(chat.exit_code(), 130)
        self.assertNotEqual(state.stat().st_mtime_ns, before)
        self.take_up(state, "--backend", "reference")

    def test_the_third_ctrl_c_leaves_at_once_and_the_file_as_it_was(self):
        state = pathlib.Path(self.folder.name) / "kept.state"
        chat = self.slow_question(state)
        before = state.stat().st_mtime_ns
        self.interrupt(chat, 3)
        self.assertEqual(chat.exit_code(), 130)
        self.assertEqual(state.stat().st_mtime_ns, before)
        self.take_up(state, "--backend", "reference")

    def test_ctrl_c_twice_while_typing_keeps_the_conversation(self):
        state = pathlib.Path(self.folder.name) / "typing.state"
        chat = Terminal(self.model, "--state", str(state))
        chat.type(b"the first\r")
        chat.wait_for(b"the first\r\n")
        chat.wait_for_more()
        chat.type(CTRL_C)
        chat.prompt()
        chat.type(CTRL_C)
        chat.wait_for(b"Ctrl-C again")
        chat.prompt()
        chat.type(CTRL_C)
        self.assertEqual(chat.exit_code(), 130)
        self.take_up(state)


if __name__ == "__main__":
    GODWIT = sys.argv.pop(1)
    unittest.main()
