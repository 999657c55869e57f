"""Runs the godwit binary under test: a clean environment, a time limit, optionally little memory."""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from dataclasses import dataclass

SECONDS = 60  # of one command; all together take far less
ADDRESS_SPACE = 1 << 30


@dataclass
class Finished:
    code: int  # exit code, or minus the signal's number
    out: bytes
    err: str
    peak_bytes: int

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")


def clean_environment(extra):
    """The environment without the twins of flags that the caller may have set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GODWIT_", "LLAMA_ARG_"))}
    kept.update(extra)
    return kept


class Program:
    def __init__(self, path):
        self.path = path
        # A sanitizer reserves terabytes of addresses: such a build cannot be limited.
        self.can_limit = self._run_limited(["--version"]).code == 0

    def start(self, args, env=None, limited=False, stdout=subprocess.PIPE):
        def limit():
            if limited:
                resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        return subprocess.Popen(
            [self.path, *map(str, args)], env=clean_environment(env or {}), preexec_fn=limit,
            stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE)

    def finish(self, process, stdin=b""):
        """Feeds, reads and reaps with wait4, which alone tells the peak memory of one process."""
        out, err = [], []
        readers = [threading.Thread(target=lambda: out.append(
                       process.stdout.read() if process.stdout else b"")),
                   threading.Thread(target=lambda: err.append(process.stderr.read()))]
        killer = threading.Timer(SECONDS, process.kill)
        for thread in [*readers, killer]:
            thread.start()
        try:
            process.stdin.write(stdin)
            process.stdin.close()
        except BrokenPipeError:
            pass
        for thread in readers:
            thread.join()
        _, status, usage = os.wait4(process.pid, 0)
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        return Finished(process.returncode, out[0], err[0].decode("utf-8", "replace"),
                        usage.ru_maxrss * 1024)

    def run(self, *args, stdin=b"", env=None):
        return self.finish(self.start(args, env), stdin)

    def _run_limited(self, args, stdin=b"", env=None):
        return self.finish(self.start(args, env, limited=True), stdin)

    def run_limited(self, *args, stdin=b"", env=None):
        """With 1 GiB of addresses, where the build allows that."""
        if not self.can_limit:
            return self.run(*args, stdin=stdin, env=env)
        return self._run_limited(args, stdin, env)


def without_progress(err):
    """Standard error but for the lines that a busy machine has time to print."""
    return "".join(line for line in err.splitlines(keepends=True)
                   if not re.fullmatch(r"\w+ \d+ %  \d+ (MiB|tokens)/s(  [\d:]+ left)?\n", line))


class GodwitTest(unittest.TestCase):
    """Tests share one program and one folder with a tiny synthetic model."""

    godwit: Program
    folder: str
    tiny: str

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def synth(cls, name, *args):
        made = cls.godwit.run("synth", *args, "-o", cls.path(name))
        if made.code != 0:
            raise AssertionError(f"synth failed: {made.err}")
        return cls.path(name)

    def write(self, name, content):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def succeed(self, *args, **kwargs):
        done = self.godwit.run(*args, **kwargs)
        self.assertEqual(done.code, 0, f"{args}: {done.err}")
        return done

    def assert_refused(self, done, code, *words):
        """One clear line on stderr, nothing on stdout."""
        self.assertEqual(done.code, code, done.err)
        self.assertEqual(done.out, b"")
        lines = done.err.splitlines()
        self.assertEqual(len(lines), 1, done.err)
        self.assertTrue(lines[0].startswith("error: "), lines[0])
        self.assertLess(len(lines[0]), 1200, lines[0])
        self.assertTrue(lines[0].isprintable(), repr(lines[0]))
        for word in words:
            self.assertIn(word, lines[0])


def main():
    """Usage of every script here: SCRIPT PATH_OF_GODWIT [unittest arguments]."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH_OF_GODWIT [unittest arguments]")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    GodwitTest.godwit = Program(os.path.abspath(sys.argv.pop(1)))
    with tempfile.TemporaryDirectory(prefix="godwit-end-to-end-") as folder:
        GodwitTest.folder = folder
        GodwitTest.tiny = GodwitTest.synth("tiny.gguf", "--shape", "tiny")
        unittest.main(exit=True)
