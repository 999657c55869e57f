"""What scripts and shells see: --json of each command, completions in a real bash, the manual, and
that both know every command and flag. On a tiny synthetic model; system's python3 only."""

import array
import json
import math
import os
import re
import shutil
import subprocess

from godwit_program import GodwitTest, clean_environment, main


class Scripting(GodwitTest):
    @classmethod
    def commands(cls):
        """Name -> the long flags that its help tells of."""
        listing = cls.godwit.run("--help").text.split("Subcommands:")[1].split("First steps:")[0]
        names = re.findall(r"^  ([a-z]+) ", listing, re.M)
        flags = {}
        for name in names:
            text = cls.godwit.run(name, "--help").text
            options = text.split("Options:")[-1].split("\nExample")[0]
            found = set()
            for line in options.splitlines():
                if re.match(r"  -", line):
                    found.update(re.findall(r"(?<![\w-])--[a-z][\w-]*", line.split("   ")[0]))
            flags[name] = found
        return flags

    def shell(self, name, *args, stdin):
        return subprocess.run([shutil.which(name), *args], input=stdin.encode(), timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=clean_environment({}), cwd=self.folder, check=False)


class Json(Scripting):
    def test_tokenize(self):
        text = "a\u00e9\u4e16"
        out = json.loads(self.succeed("tokenize", "-m", self.tiny, "-p", text, "--json").out)
        self.assertEqual(out["n_tokens"], len(out["ids"]))
        self.assertEqual([t["id"] for t in out["tokens"]], out["ids"])
        ids = json.loads(self.succeed("tokenize", "-m", self.tiny, "-p", text, "--ids").out)
        self.assertEqual(out["ids"], ids)
        data = b"".join(bytes.fromhex(t["hex"]) for t in out["tokens"])
        self.assertIn(text.encode(), data)

    def test_check(self):
        out = json.loads(self.succeed("check", "-m", self.tiny, "--json", "--tokens", 3,
                                      "--decode", 1).out)
        self.assertIs(out["holds"], True)
        self.assertIsNone(out["failure"])
        kinds = {step["kind"]: step for step in out["steps"]}
        self.assertGreater(kinds["attend"]["compared"], 0)
        self.assertLessEqual(kinds["attend"]["worst_ratio"], 1)

    def test_bench(self):
        args = ("bench", "-m", self.tiny, "-p", 4, "-n", 0, "-r", 1)
        short, long = (json.loads(self.succeed(*args, *form).out)
                       for form in (("--json",), ("-o", "json")))
        self.assertEqual(short[0].keys(), long[0].keys())

    def test_run(self):
        out = json.loads(self.succeed("run", "-m", self.tiny, "-p", "x", "-n", 2, "--json",
                                      "--ignore-eos").out)
        self.assertEqual(set(out), {"text", "tokens", "stop_reason", "seed", "logprobs", "stats"})
        self.assertGreater(out["stats"]["measured_bandwidth_gbps"], 0)

    def test_devices(self):
        out = json.loads(self.succeed("devices", "--json").out)
        cpu = out["cpu"]
        self.assertGreaterEqual(cpu["threads"], 1)
        self.assertGreater(cpu["memory_bytes"], cpu["available_bytes"])
        self.assertGreater(cpu["bandwidth_gbps"], 0)
        self.assertIn("Q4_K", cpu["kernels"])
        self.assertIn("cpu", out["backends"])
        self.assertEqual(set(out["cuda"]), {"built", "devices"})
        self.assertTrue(out["cuda"]["built"] or not out["cuda"]["devices"])
        lower = json.loads(self.succeed("devices", "--json", "--no-bandwidth",
                                        env={"GODWIT_ISA": "generic"}).out)["cpu"]
        self.assertEqual(lower["isa"], "generic")
        self.assertIn("generic", lower["kernels"]["Q8_0"])
        self.assertIsNone(lower["bandwidth_gbps"])


class UpstreamCommandLines(Scripting):
    def test_a_llama_cli_command_line_works(self):
        system = self.write("system.txt", "Be brief.\n")
        done = self.succeed(
            "run", "-m", self.tiny, "-p", "hello", "-n", 2, "-c", 512, "-ngl", "99", "-fa", "on",
            "-sysf", system, "--temp", "0", "--top-k", "40", "--typical-p", "1.0", "-b", "2048",
            "-ub", "512", "-tb", "2", "-C", "0xff", "--prio", "2", "--no-kv-offload", "-np", "1",
            "--kv-unified", "--swa-full", "-md", "draft.gguf", "--spec-draft-n-max", "16", "-lv",
            "3", "--log-colors", "off", "--no-perf", "--keep", "0", "--ignore-eos", "-st",
            "--no-stats", "-sp")
        self.assertNotIn("error", done.err)
        for flag in ("-ngl", "-C", "-np", "-md", "--log-colors"):
            self.assertIn(f"warning: {flag} does not apply to Godwit and is ignored", done.err)

    def test_a_llama_perplexity_command_line_works(self):
        text = self.write("words.txt", "one two three four " * 60)
        done = self.succeed("perplexity", "-m", self.tiny, "-f", text, "-c", "32", "-b", "32",
                            "--chunks", "2", "-t", "2", "-ngl", "0", "--no-warmup")
        self.assertIn("Final estimate: PPL", done.text)


class Devices(Scripting):
    def test_text(self):
        text = self.succeed("devices").text
        self.assertRegex(text, r"^cpu: .* threads \(.* free\)\n")
        self.assertRegex(text, r"bandwidth +\d+\.\d GB/s")
        self.assertIn("\ncuda: ", text)

    def test_list_devices_needs_nothing_else(self):
        for command in ("run", "chat", "bench", "perplexity", "info"):
            with self.subTest(command=command):
                text = self.succeed(command, "--list-devices").text
                self.assertTrue(text.startswith("Available devices:\n  cpu: "), text)

    def test_wrong_isa(self):
        done = self.godwit.run("devices", env={"GODWIT_ISA": "mmx"})
        self.assert_refused(done, 1, "GODWIT_ISA=mmx")


class Completions(Scripting):
    def complete(self, *words):
        """What bash offers for the last of the words."""
        script = self.succeed("completions", "bash").text
        quoted = " ".join("'" + w.replace("'", "'\\''") + "'" for w in words)
        done = self.shell("bash", "--norc", stdin=script + f"""
COMP_WORDS=(godwit {quoted}); COMP_CWORD={len(words)}
_godwit 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}"
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stdout.decode().splitlines() if line]

    def test_bash_completes_commands(self):
        self.assertEqual(self.complete("perp"), ["perplexity"])
        offered = self.complete("")
        for name in self.commands():
            self.assertIn(name, offered)
        self.assertIn("--version", offered)

    def test_bash_completes_flags(self):
        for command, flags in self.commands().items():
            with self.subTest(command=command):
                self.assertTrue(flags)
                self.assertLessEqual(flags, set(self.complete(command, "-")))
        self.assertEqual(self.complete("run", "--no-disp"), ["--no-display-prompt"])
        self.assertIn("-ctk", self.complete("run", "-ct"))

    def test_bash_completes_values(self):
        self.write("a prompt.txt", "x")
        self.assertIn("a prompt.txt", self.complete("run", "-f", "a p"))
        self.assertEqual(self.complete("run", "-m", "smol"), ["smollm2"])
        self.assertIn("tiny.gguf", self.complete("run", "-m", "ti"))
        self.assertEqual(self.complete("run", "-n", ""), [])
        self.assertEqual(self.complete("completions", "z"), ["zsh"])

    def test_bash_loads_it(self):
        script = self.succeed("completions", "bash").text
        done = self.shell("bash", "--norc", stdin=script + "\ncomplete -p godwit\n")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"-F _godwit", done.stdout)

    def test_every_shell_knows_every_flag(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.succeed("completions", shell).text
            for command, flags in self.commands().items():
                self.assertIn(command, script)
                for flag in flags:
                    written = f"-l {flag[2:]} " if shell == "fish" else flag
                    self.assertIn(written, script, f"{shell}: {command} {flag}")

    def test_zsh_and_fish_parse_it(self):
        for shell in ("zsh", "fish"):
            if shutil.which(shell) is None:
                continue
            done = self.shell(shell, "-n", stdin=self.succeed("completions", shell).text)
            self.assertEqual((done.returncode, done.stderr), (0, b""), shell)

    def test_quotes_in_descriptions_are_closed(self):
        for line in self.succeed("completions", "fish").text.splitlines():
            self.assertEqual(len(re.findall(r"(?<!\\)'", line)) % 2, 0, line)

    def test_another_shell_is_refused(self):
        self.assert_refused(self.godwit.run("completions", "tcsh"), 2, "tcsh")


class Manual(Scripting):
    def test_has_every_command_and_flag(self):
        page = self.succeed("man").text
        self.assertTrue(page.startswith(".TH GODWIT 1 "))
        for command, flags in self.commands().items():
            section = page.split(f".SS godwit {command}\n")[1].split("\n.SS ")[0]
            for flag in flags:
                self.assertIn(flag.replace("-", "\\-") + "\\fR", section)
        self.assertIn("GODWIT_CTX_SIZE", page)

    def test_no_line_is_taken_for_a_macro(self):
        known = {"TH", "ad", "nh", "SH", "SS", "TP", "PP", "nf", "fi"}
        for line in self.succeed("man").text.splitlines():
            if line.startswith((".", "'")):
                self.assertIn(line[1:].split(" ")[0], known, line)

    def test_checkers_accept_it(self):
        path = self.write("godwit.1", self.succeed("man").out)
        for checker in (["mandoc", "-Tlint", "-Wwarning", path],
                        ["groff", "-man", "-ww", "-Wbreak", "-z", "-Tutf8", path]):
            if shutil.which(checker[0]) is None:
                continue
            done = subprocess.run(checker, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=60, check=False)
            complaints = [line for line in done.stdout.decode().splitlines()
                          if "missing date" not in line]  # a page made anew has none
            self.assertEqual(complaints, [], checker[0])


class Perplexity(Scripting):
    @classmethod
    def setUpClass(cls):
        words = [f"w{i * 7919 % 97}" for i in range(400)]
        cls.text = cls.path("text.txt")
        with open(cls.text, "w", encoding="ascii") as file:
            file.write(" ".join(words) + "\n")
        cls.other = cls.synth("other.gguf", "--shape", "tiny", "--type", "q4_0", "--seed", "3")

    def evaluate(self, *args, model=None, env=None):
        done = self.succeed("perplexity", "-m", model or self.tiny, "-c", 64, "--json", *args,
                            env=env)
        return json.loads(done.out)

    def test_forms(self):
        args = ("perplexity", "-m", self.tiny, "-f", self.text, "-c", 64, "--chunks", 3)
        done = self.succeed(*args)
        self.assertRegex(done.text, r"^\[1\]\d+\.\d{4},\[2\]\d+\.\d{4},\[3\]\d+\.\d{4},\n"
                                    r"Final estimate: PPL = \d+\.\d{4} \+/- \d+\.\d{5}\n$")
        self.assertRegex(done.err, r"3 chunks of 64 tokens")
        self.assertRegex(done.err, r"93 tokens scored, 189 computed in .* tok/s")
        table = self.succeed(*args, "--ppl-output-type", 1).text.splitlines()
        self.assertRegex(table[1], r"^      64  \d+\.\d{4}  \d+\.\d+  \d+\.\d+$")

    def test_json(self):
        out = self.evaluate("-f", self.text, "--chunks", 3)
        self.assertEqual((out["n_ctx"], out["chunks"], out["tokens_scored"]), (64, 3, 93))
        self.assertEqual(out["running_ppl"][-1], out["ppl"])
        self.assertEqual(len(out["running_ppl"]), 3)
        self.assertGreater(out["tokens_per_s"], 0)
        self.assertNotIn("divergence", out)

    def test_no_setting_of_chunks_and_threads_changes_a_bit(self):
        expected = self.evaluate("-f", self.text, "--chunks", 3)["running_ppl"]
        for flags in (("-ub", 1), ("-ub", 13), ("-t", 1), ("-t", 3)):
            with self.subTest(flags=flags):
                found = self.evaluate("-f", self.text, "--chunks", 3, *flags)
                self.assertEqual(found["running_ppl"], expected)

    def test_agrees_with_logits_one_by_one(self):
        """The same windows from `logits`, which runs prompts another way."""
        ids = json.loads(self.succeed("tokenize", "-m", self.tiny, "--no-escape", "--ids", "-f",
                                      self.text, "--no-parse-special").out)
        out = self.evaluate("-f", self.text, "--chunks", 1)
        prompts = [ids[:n] for n in range(33, 64)]
        request = self.write("prompts.json", json.dumps({"prompts": prompts}))
        header = json.loads(self.succeed("logits", "-m", self.tiny, "-f", request, "-o",
                                         self.path("rows"), "-c", 64).out)
        rows = array.array("f")
        with open(self.path("rows"), "rb") as file:
            rows.frombytes(file.read())
        n, total = header["n_vocab"], 0.0
        for i, prompt in enumerate(prompts):
            row = rows[i * n:(i + 1) * n]
            log_sum = math.log(sum(math.exp(x) for x in row))
            total += log_sum - row[ids[len(prompt)]]
        self.assertAlmostEqual(out["mean_nll"], total / len(prompts), places=6)

    def test_strides(self):
        out = self.evaluate("-f", self.text, "--ppl-stride", 40, "-c", 200, "--chunks", 2)
        self.assertEqual((out["n_ctx"], out["tokens_scored"]), (256, 80))

    def test_divergence_from_itself_is_none_and_from_another_is_some(self):
        base = self.path("base.logits")
        saved = self.evaluate("-f", self.text, "--chunks", 4, "--save-all-logits", base)
        same = self.evaluate("--kl-divergence-base", base, "--kl-divergence")
        self.assertEqual(same["running_ppl"], saved["running_ppl"])
        figures = same["divergence"]
        self.assertLess(abs(figures["kld"]["mean"]), 1e-4)
        self.assertGreater(figures["same_top"]["value"], 0.95)
        other = self.evaluate("--kl-divergence-base", base, "--kl-divergence", model=self.other)
        self.assertGreater(other["divergence"]["kld"]["mean"], 0.01)
        self.assertLess(other["divergence"]["same_top"]["value"], 0.9)
        text = self.succeed("perplexity", "-m", self.other, "--kl-divergence", "--save-all-logits",
                            base).text
        for words in ("Mean PPL(base)", "Mean    KLD:", "99.0%   KLD:", "RMS \u0394p",
                      "Same top p:"):
            self.assertIn(words, text)

    def test_what_cannot_be_is_refused(self):
        base = self.path("small.logits")
        self.evaluate("-f", self.text, "--chunks", 1, "--save-all-logits", base)
        with open(base, "rb") as file:
            data = file.read()
        short = self.write("short.logits", data[:-1])
        wrong = self.write("wrong.logits", b"GGUF" + data[4:])
        vocabulary = self.synth("vocabulary.gguf", "--shape", "tiny", "--vocab", "600")
        for args, words in (
                (("-f", self.text, "-c", 2048), ("the text has", "need at least 4096")),
                (("-f", self.text, "-c", 0), ("-c",)),
                ((), ("expected a text",)),
                (("-f", "/no/such"), ("/no/such",)),
                (("--kl-divergence",), ("--kl-divergence-base FILE",)),
                (("--kl-divergence", "--kl-divergence-base", short), ("bytes, the file has",)),
                (("--kl-divergence", "--kl-divergence-base", wrong), ("_logits_",)),
                (("--kl-divergence", "--kl-divergence-base", "/no/such"), ("/no/such",)),
                (("-f", self.text, "-c", 64, "--save-all-logits", "/no/such/x"), ("/no/such/x",)),
                (("-f", self.text, "-c", 64, "--ppl-stride", 8, "--save-all-logits", base),
                 ("--ppl-stride",))):
            with self.subTest(args=args):
                done = self.godwit.run("perplexity", "-m", self.tiny, *args)
                self.assert_refused(done, 1, *words)
        done = self.godwit.run("perplexity", "-m", vocabulary, "--kl-divergence",
                               "--kl-divergence-base", base)
        self.assert_refused(done, 1, "in its vocabulary, the model 600")

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        done = self.godwit.run("perplexity", "-m", self.tiny, "-f", self.text, "-c", 64,
                               "--save-all-logits", "/dev/full")
        self.assertEqual(done.code, 1)
        self.assertIn("disk full?", done.err)

    def test_environment_twins(self):
        env = {"GODWIT_FILE": self.text, "GODWIT_CHUNKS": "2", "GODWIT_SAVE_ALL_LOGITS": ""}
        self.assertEqual(self.evaluate(env=env)["chunks"], 2)


if __name__ == "__main__":
    main()
