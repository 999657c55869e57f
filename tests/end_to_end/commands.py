"""What each command prints and where, on a tiny synthetic model: streams, formats, exit codes, and
that no setting of threads, chunks or instruction sets changes a bit. System's python3 only."""

import csv
import io
import json
import os
import re
import signal
import struct
import time
import xml.etree.ElementTree

from godwit_program import SECONDS, GodwitTest, main, without_progress

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Commands(GodwitTest):
    @classmethod
    def setUpClass(cls):
        # For answers that do not end soon of themselves, and weights of several types.
        cls.mixed = cls.synth("mixed.gguf", "--shape", "tiny", "--type", "q4_k", "--tensor-type",
                              "ffn_down=q6_k", "--tensor-type", "attn_v=q8_0",
                              "--embedding-type", "f16", "--seed", "7")
        cls.prompt = "one two three four five six seven eight nine ten " * 3

    def answer(self, *args, env=None, model=None):
        """`run --json` without measuring the bandwidth."""
        done = self.succeed("run", "-m", model or self.mixed, "--json", "--no-stats", "-n", 12,
                            "--ignore-eos", *args, env=env)
        self.assertEqual(without_progress(done.err), "")
        return json.loads(done.out)

    def probabilities(self, *args, env=None):
        answer = self.answer("-no-cnv", "-p", self.prompt, "--temp", "0", "--n-probs", "3",
                             *args, env=env)
        self.assertEqual(len(answer["tokens"]), 12)
        return answer["tokens"], answer["logprobs"], answer["text"]


class Run(Commands):
    def test_text_goes_to_stdout_and_figures_to_stderr(self):
        done = self.succeed("run", "-m", self.tiny, "-no-cnv", "-p", "Once upon", "-n", 3,
                            "--ignore-eos", "-s", 5)
        self.assertTrue(done.text.startswith("Once upon"))
        self.assertTrue(done.text.endswith("\n"))
        self.assertNotIn("tok/s", done.text)
        self.assertRegex(done.err, r"prompt \d+ tokens, .* \| decode 3 tokens, .* GB/s")

    def test_no_display_prompt_and_no_stats(self):
        args = ("run", "-m", self.tiny, "-no-cnv", "-p", "Once upon", "-n", 3, "--ignore-eos",
                "-s", 5, "--no-stats")
        whole, rest = self.succeed(*args), self.succeed(*args, "--no-display-prompt")
        self.assertEqual(whole.text, "Once upon" + rest.text)
        self.assertEqual(whole.err, "")

    def test_chat_template_is_applied_unless_asked_not_to(self):
        chat = self.answer("-p", "hello")["stats"]["prompt_tokens"]
        raw = self.answer("-p", "hello", "-no-cnv")["stats"]["prompt_tokens"]
        system = self.answer("-p", "hello", "-sys", "Be brief.")["stats"]["prompt_tokens"]
        self.assertGreater(chat, raw)
        self.assertGreater(system, chat)

    def test_number_of_tokens(self):
        self.assertEqual(self.answer("-p", "hello", "-n", 0)["tokens"], [])
        answer = self.answer("-p", "hello", "-n", 5)
        self.assertEqual(len(answer["tokens"]), 5)
        self.assertEqual(answer["stop_reason"], "token limit")
        full = self.answer("-p", "hello", "-n", -1, "-c", 64, "-no-cnv")
        self.assertEqual(full["stop_reason"], "context full")
        # The last token needs no place of its own: nothing is computed after it.
        self.assertEqual(full["stats"]["prompt_tokens"] + len(full["tokens"]), 65)

    def test_greedy_is_the_same_every_time(self):
        self.assertEqual(self.probabilities(), self.probabilities())

    def test_a_seed_makes_it_reproducible(self):
        first = self.answer("-p", "hello", "-s", 11)
        self.assertEqual(first["seed"], 11)
        self.assertEqual(first["tokens"], self.answer("-p", "hello", "-s", 11)["tokens"])
        others = {tuple(self.answer("-p", "hello", "-s", s)["tokens"]) for s in range(12, 16)}
        self.assertGreater(len(others), 1)
        drawn = self.answer("-p", "hello")
        self.assertEqual(drawn["tokens"], self.answer("-p", "hello", "-s", drawn["seed"])["tokens"])

    def test_threads_chunks_and_instruction_sets_do_not_change_a_bit(self):
        expected = self.probabilities()
        for flags in (("-t", 1), ("-t", 2), ("-t", 3), ("-ub", 1), ("-ub", 7), ("-ub", 512)):
            with self.subTest(flags=flags):
                self.assertEqual(self.probabilities(*flags), expected)
        ran = []
        for isa in ("generic", "avx2", "avx512vnni", "avx512bf16"):
            env = {"GODWIT_ISA": isa}
            probe = self.godwit.run("run", "-m", self.tiny, "-p", "x", "-n", 0, "--no-stats",
                                    env=env)
            if probe.code != 0:
                self.assertIn("more than this processor has", probe.err)
                continue
            ran.append(isa)
            with self.subTest(isa=isa):
                self.assertEqual(self.probabilities("-ub", 5, env=env), expected)
        self.assertIn("generic", ran)

    def test_kv_types(self):
        both = self.probabilities("--kv", "f32")
        self.assertEqual(self.probabilities("-ctk", "f32", "-ctv", "F32"), both)
        self.assertNotEqual(both[1], self.probabilities()[1])

    def test_log_probabilities(self):
        tokens, reports, _ = self.probabilities()
        self.assertEqual([r["id"] for r in reports], tokens)
        for report in reports:
            top = [t["logprob"] for t in report["top_logprobs"]]
            self.assertEqual(len(top), 3)
            self.assertEqual(top, sorted(top, reverse=True))
            self.assertEqual(report["logprob"], top[0])  # greedy
            self.assertLess(top[0], 0)

    def test_logit_bias(self):
        tokens, _, _ = self.probabilities()
        biased = self.probabilities("-l", f"{tokens[0]}-100", "--logit-bias", "300+0")
        self.assertNotIn(tokens[0], biased[0])
        forced = self.probabilities("-l", "300+100")
        self.assertEqual(forced[0], [300] * 12)

    def test_stop_strings(self):
        _, _, text = self.probabilities()
        stop = text[len(text) // 2:][:3]
        answer = self.answer("-no-cnv", "-p", self.prompt, "--temp", 0, "-r", "never there", "-r",
                             stop, "--no-escape")
        self.assertEqual(answer["stop_reason"], "stop string")
        self.assertEqual(answer["text"], text[:text.index(stop)])

    def test_prompt_sources(self):
        direct = self.answer("-p", "a line\nb", "--temp", 0)
        self.assertEqual(self.answer("-p", r"a line\nb", "--temp", 0)["text"], direct["text"])
        path = self.write("prompt.txt", "a line\nb\n")
        self.assertEqual(self.answer("-f", path, "--temp", 0)["text"], direct["text"])
        piped = self.succeed("run", "-m", self.mixed, "--json", "--no-stats", "-n", 12,
                             "--ignore-eos", "--temp", 0, "-f", "-", stdin=b"a line\nb\n")
        self.assertEqual(json.loads(piped.out)["text"], direct["text"])

    def test_values_that_look_like_flags(self):
        for prompt in ("-5 apples", "--json", "-ngl", "--", "[1]"):
            with self.subTest(prompt=prompt):
                done = self.succeed("run", "-m", self.tiny, "-no-cnv", "-p", prompt, "-n", 0,
                                    "--no-stats", "-r", "-x")
                self.assertEqual(done.text, prompt + "\n")

    def test_ignored_upstream_flags_warn_once_each(self):
        done = self.succeed("run", "-m", self.tiny, "-p", "x", "-n", 1, "--no-stats", "-ngl", "99",
                            "-fa", "--no-mmap")
        lines = done.err.splitlines()
        self.assertEqual(len(lines), 3, done.err)
        for line, flag in zip(lines, ("-ngl", "-fa", "--no-mmap")):
            self.assertTrue(line.startswith("warning: " + flag), line)

    def test_environment_twins(self):
        env = {"GODWIT_MODEL": self.mixed, "GODWIT_JSON": "1", "GODWIT_NO_STATS": "on",
               "LLAMA_ARG_N_PREDICT": "4", "GODWIT_PROMPT": "twin", "GODWIT_IGNORE_EOS": "true",
               "GODWIT_TEMP": "0", "GODWIT_NO_CONVERSATION": "1"}
        twin = json.loads(self.succeed("run", env=env).out)
        flags = self.answer("-p", "twin", "-n", 4, "--temp", 0, "-no-cnv")
        self.assertEqual(twin["tokens"], flags["tokens"])
        self.assertEqual(len(json.loads(self.succeed("run", "-n", 2, env=env).out)["tokens"]), 2)
        path = self.write("other.txt", "another prompt, and longer")
        other = json.loads(self.succeed("run", "-f", path, env=env).out)
        self.assertGreater(other["stats"]["prompt_tokens"], twin["stats"]["prompt_tokens"])

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for args in (("run", "-m", self.tiny, "-p", "x", "-n", 2, "--no-stats"), ("--help",),
                     ("tokenize", "-m", self.tiny, "-p", "x")):
            with self.subTest(command=args[0]), open("/dev/full", "wb") as full:
                process = self.godwit.start(args, stdout=full)
                done = self.godwit.finish(process)
                self.assertEqual(done.code, 1)
                self.assertEqual(done.err, "error: cannot write to standard output\n")

    def test_smollm2_knows_a_capital(self):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        if not os.path.exists(os.path.join(cache, "godwit", "models", SMOLLM2)):
            self.skipTest("smollm2 has not been pulled")
        answer = self.answer("-no-cnv", "-p", "The capital of France is", "--temp", 0,
                             model="smollm2")
        self.assertTrue(answer["text"].startswith(" Paris"), answer["text"])


class Interrupts(Commands):
    """The reference backend is slow enough to be interrupted at a chosen moment."""

    def start(self, *args):
        process = self.godwit.start(("run", "-m", self.mixed, "-no-cnv", "-c", 100000, "--temp", 0,
                                     "--ignore-eos", "--no-stats", "--backend", "reference", *args))
        self.wait(lambda: self.signals(process, "SigCgt"))  # until the handler is there
        return process

    def signals(self, process, field):
        """Whether SIGINT is in a set of signals that Linux tells of a process."""
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            mask = next(line for line in status if line.startswith(field + ":")).split()[1]
        return int(mask, 16) >> (signal.SIGINT - 1) & 1 == 1

    def wait(self, condition):
        deadline = time.monotonic() + SECONDS / 2
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.005)

    def test_the_first_stops_the_answer(self):
        process = self.start("-p", "go", "-n", -1)
        os.read(process.stdout.fileno(), 3)  # the prompt, and the answer begins
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        done = self.godwit.finish(process)
        self.assertEqual(done.code, 0, done.err)
        self.assertTrue(done.text.endswith("\n"))
        self.assertLess(time.monotonic() - started, SECONDS / 4)

    def test_the_second_leaves_at_once(self):
        # One call of seconds, which the first cannot stop.
        process = self.start("-p", "w100 " * 1500, "-ub", 8000, "-n", 1)
        process.send_signal(signal.SIGINT)
        self.wait(lambda: not self.signals(process, "ShdPnd"))
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        self.assertEqual(self.godwit.finish(process).code, 130)
        self.assertLess(time.monotonic() - started, 1)


class Chat(Commands):
    def chat(self, text, *args):
        return self.succeed("chat", "-m", self.mixed, "-n", 4, "--temp", 0, "--ignore-eos", *args,
                            stdin=text.encode())

    def test_answers_to_a_pipe(self):
        done = self.chat("hello\n/quit\nnever asked\n")
        self.assertEqual(done.text.count("\n"), 1)
        self.assertEqual(done.out, self.chat("hello\n").out)  # the end of input is as good
        self.assertIn("/help", done.err)

    def test_commands(self):
        done = self.chat("/stats\nhello\n/stats\n/reset\n/help\n/quit\n")
        self.assertIn("no answer yet", done.text)
        self.assertRegex(done.text, r"decode 4 tokens")
        self.assertRegex(done.text, r"context \d+ of \d+ positions")
        self.assertIn("forgotten", done.text)
        self.assertIn("/reset", done.text)

    def test_unknown_command_is_not_sent(self):
        done = self.chat("/nonsense\n")
        self.assertEqual(done.out, b"")
        self.assertIn("'/nonsense' is not a command", done.err)

    def test_reset_forgets(self):
        first, again = self.chat("hello\n").out, self.chat("other\n/reset\nhello\n").out
        self.assertTrue(again.endswith(b"forgotten\n" + first), (first, again))

    def test_keeps_what_was_computed(self):
        done = self.chat("hello\nand more\n/stats\n")
        self.assertRegex(done.text, r"prompt \d+ tokens \(\d+ kept\)")

    def test_a_reset_does_not_compute_the_same_again(self):
        stats = self.chat("hello\nother\n/reset\nhello\n/stats\n", "-sys", "Be brief.").text
        found = re.search(r"prompt (\d+) tokens \((\d+) kept, (\d+) of them cached\)", stats)
        self.assertTrue(found, stats)
        n_prompt, n_kept, n_cached = map(int, found.groups())
        self.assertEqual((n_kept, n_cached), (n_prompt - 1, n_prompt - 1))
        stats = self.chat("hello\n/reset\nhello\n/stats\n", "-cram", 0).text
        self.assertNotIn("cached", stats)

    def test_regen_and_undo(self):
        done = self.chat("/regen\n/undo\nhello\n/regen\nmore\n/undo\nmore\n")
        self.assertIn("there is no answer yet", done.err)
        lines = done.text.split("\n")
        # Greedy: the next seed says the same.
        self.assertEqual(lines[0], "nothing to take back")
        self.assertEqual(lines[1], lines[2])
        self.assertEqual(lines[3:5], [lines[5 - 2], "taken back"])
        self.assertEqual(lines[5], lines[3])

    def test_a_saved_conversation_goes_on(self):
        state = self.path("talk.state")
        whole = self.chat("hello\nand more\nlast\n").out
        first = self.chat("hello\n", "--state", state).out
        second = self.chat("and more\n/quit\n", "--state", state).out
        third = self.chat("last\n/stats\n", "--state", state).text
        self.assertTrue(third.encode().startswith(whole[len(first + second):]))
        self.assertEqual(whole[:len(first + second)], first + second)
        self.assertRegex(third, r"prompt \d+ tokens \(\d+ kept\)")
        other = self.path("other.state")
        self.assertIn("saved to " + other, self.chat("hello\n/save " + other + "\n").text)
        self.assertTrue(os.path.exists(other))
        self.assertIn("no --state was given", self.chat("/save\n").err)

    def test_recurrent_layers_go_on_from_snapshots_only(self):
        model = self.synth("hybrid.gguf", "--arch", "qwen3next", "--shape", "tiny", "--experts",
                           "4", "--experts-used", "2", "--expert-ffn", "256", "--shared-ffn", "256",
                           "--ssm-key-heads", "2", "--ssm-value-heads", "4", "--ssm-head-dim", "64",
                           "--type", "q8_0", "--seed", "3")
        if self.godwit.run("run", "-m", model, "-p", "x", "-n", 1).code != 0:
            self.skipTest("no recurrent layers yet")
        state = self.path("hybrid.state")
        long = b"hello " * 20 + b"\n"  # some chunks
        ask = ("chat", "-m", model, "-n", 4, "--temp", 0, "--ignore-eos", "-ub", 16)
        whole = self.succeed(*ask, stdin=long + b"and more\n").out
        first = self.succeed(*ask, "--state", state, stdin=long).out
        second = self.succeed(*ask, "--state", state, stdin=b"and more\n").out
        self.assertEqual(whole, first + second)
        # Back to where a chunk ended.
        turned = self.succeed(*ask, stdin=long + b"other\n/reset\n" + long + b"/stats\n").out
        self.assertTrue(turned.split(b"forgotten\n")[1].startswith(first))
        self.assertRegex(turned, rb"\d+ of them cached")

    def test_a_state_that_is_none_is_left_alone(self):
        state = self.path("broken.state")
        with open(state, "wb") as file:
            file.write(b"something else entirely")
        done = self.godwit.run("chat", "-m", self.mixed, "--state", state, stdin=b"hello\n")
        self.assertEqual(done.code, 1)
        self.assertIn("not a saved state", done.err)
        with open(state, "rb") as file:
            self.assertEqual(file.read(), b"something else entirely")

    def test_run_keeps_a_prompt(self):
        state = self.path("run.state")
        ask = ("run", "-m", self.mixed, "-no-cnv", "-n", 4, "--temp", 0, "--json", "--ignore-eos",
               "-p", "hello " * 40)
        plain, first, second = (json.loads(self.succeed(*ask, *more).out)
                                for more in ((), ("--state", state), ("--state", state)))
        self.assertEqual(first["tokens"], plain["tokens"])
        self.assertEqual(second["tokens"], plain["tokens"])
        self.assertEqual(first["stats"]["prompt_tokens_kept"], 0)
        self.assertEqual(second["stats"]["prompt_tokens_kept"],
                         second["stats"]["prompt_tokens"] - 1)

    def test_a_backslash_continues_the_line(self):
        self.assertEqual(self.chat("one\\\ntwo\n").text.count("\n"), 1)

    def test_a_message_too_long_leaves_the_conversation(self):
        done = self.chat("word " * 400 + "\nhello\n", "-c", 128)
        self.assertEqual(done.text.count("\n"), 1)
        self.assertRegex(done.err, r"error: the prompt has \d+ tokens, the context holds 128")


class Info(Commands):
    def test_json(self):
        facts = json.loads(self.succeed("info", "-m", self.tiny, "--json", "-c", 300).out)
        self.assertEqual(facts["architecture"], "llama")
        self.assertEqual(facts["bytes"], os.path.getsize(self.tiny))
        self.assertEqual(facts["metadata"]["llama.block_count"], 2)
        self.assertEqual(facts["metadata"]["general.architecture"], "llama")
        self.assertEqual(facts["metadata"]["tokenizer.ggml.tokens"]["size"], facts["vocabulary"])
        memory = facts["memory"]
        self.assertEqual(memory["context"], 300)
        self.assertEqual(memory["k_type"], "f16")
        for key in ("weight_bytes", "kv_bytes", "scratch_bytes", "available_bytes"):
            self.assertGreater(memory[key], 0, key)
        wide = json.loads(self.succeed("info", "-m", self.tiny, "--json", "-c", 300,
                                       "--kv", "f32").out)
        self.assertEqual(wide["memory"]["kv_bytes"], 2 * memory["kv_bytes"])
        self.assertEqual([f["position"] for f in facts["floor"]], [0, 299])
        self.assertGreater(facts["floor"][1]["kv_bytes"], facts["floor"][0]["kv_bytes"])
        self.assertNotIn("tensors", facts)

    def test_json_lists(self):
        facts = json.loads(self.succeed("info", "-m", self.mixed, "--json", "--tensors",
                                        "--steps").out)
        self.assertEqual(len(facts["tensors"]), sum(t["tensors"] for t in facts["types"].values()))
        types = {t["name"]: t["type"] for t in facts["tensors"]}
        self.assertEqual(types["blk.0.ffn_down.weight"], "Q6_K")
        self.assertGreaterEqual(len(facts["step_list"]), facts["steps"])

    def test_text(self):
        done = self.succeed("info", "-m", self.tiny, "--tensors", "--steps", "--kv", "f32")
        for words in ("blk.1.attn_q.weight", "blk.1.attend", "general.architecture", "KV f32/f32",
                      "tok/s at most", "available"):
            self.assertIn(words, done.text)
        self.assertEqual(done.err, "")


class Tokenize(Commands):
    def test_formats(self):
        ids = json.loads(self.succeed("tokenize", "-m", self.tiny, "-p", "hello", "--ids").out)
        table = self.succeed("tokenize", "-m", self.tiny, "-p", "hello", "--show-count").text
        rows = re.findall(r"^ *(\d+) -> '(.*)'$", table, re.M)
        self.assertEqual([int(i) for i, _ in rows], ids)
        self.assertIn(f"Total number of tokens: {len(ids)}", table)
        self.assertEqual(self.succeed("tokenize", "-m", self.tiny, "--ids", "--stdin",
                                      stdin=b"hello").out, f"{ids}\n".encode())

    def test_sources_exclude_each_other(self):
        path = self.write("text.txt", "x")
        done = self.godwit.run("tokenize", "-m", self.tiny, "-p", "x", "-f", path)
        self.assert_refused(done, 2, "--prompt", "--file")
        # But a flag beats the twin of another source.
        done = self.succeed("tokenize", "-m", self.tiny, "-p", "y", "--ids",
                            env={"GODWIT_FILE": path})
        self.assertEqual(done.out, self.succeed("tokenize", "-m", self.tiny, "-p", "y",
                                                "--ids").out)


class Logits(Commands):
    def test_shape_order_and_both_ways_of_computing(self):
        prompts = self.write("prompts.json", json.dumps({"prompts": [[5, 6, 7], [5, 6, 7, 8]]}))
        out = self.path("logits.bin")
        args = ("logits", "-m", self.mixed, "-f", prompts, "-o", out, "--generate", 3)
        header = json.loads(self.succeed(*args).out)
        self.assertEqual(header["rows_per_prompt"], 3)
        with open(out, "rb") as file:
            raw = file.read()
        n = header["n_vocab"]
        self.assertEqual(len(raw), 2 * 3 * n * 4)
        rows = [struct.unpack_from(f"<{n}f", raw, i * n * 4) for i in range(6)]
        for p in range(2):
            for i, token in enumerate(header["tokens"][p]):
                row = rows[3 * p + i]
                self.assertEqual(token, row.index(max(row)))
        self.assertEqual(json.loads(self.succeed(*args, "--stepwise").out)["tokens"],
                         header["tokens"])


class Bench(Commands):
    ARGS = ("-p", 0, "-n", 4, "-pg", "4,2", "-d", "0,8", "-r", 2)
    TESTS = [(0, 4, 0), (4, 2, 0), (0, 4, 8), (4, 2, 8)]

    def bench(self, *args):
        done = self.succeed("bench", "-m", self.tiny, *self.ARGS, *args)
        self.assertEqual(without_progress(done.err), "")
        return done.text

    def check_rows(self, rows):
        self.assertEqual([(int(r["n_prompt"]), int(r["n_gen"]), int(r["n_depth"])) for r in rows],
                         self.TESTS)
        for row in rows:
            self.assertGreater(float(row["avg_ts"]), 0)
            self.assertGreater(float(row["bytes_per_token"]), 0)
            self.assertEqual(row["type_k"], "f16")

    def test_json(self):
        rows = json.loads(self.bench("-o", "json"))
        self.check_rows(rows)
        self.assertEqual(len(rows[0]["samples_ns"]), 2)

    def test_json_lines(self):
        self.check_rows([json.loads(line) for line in self.bench("-o", "jsonl").splitlines()])

    def test_csv(self):
        self.check_rows(list(csv.DictReader(io.StringIO(self.bench("-o", "csv")))))

    def test_markdown(self):
        lines = [line for line in self.bench().splitlines() if line.startswith("|")]
        self.assertEqual(len({line.count("|") for line in lines}), 1)
        cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
        self.assertEqual(cells[0][:7],
                         ["model", "size", "params", "backend", "threads", "test", "t/s"])
        self.assertEqual([row[5] for row in cells[2:]],
                         ["tg4", "pp4+tg2", "tg4 @ d8", "pp4+tg2 @ d8"])

    def test_a_model_twice_is_one_table(self):
        done = self.succeed("bench", "-m", f"{self.tiny},{self.tiny}", "-p", 4, "-n", 0, "-r", 1,
                            "-o", "json", "--progress")
        self.assertEqual(len(json.loads(done.out)), 2)
        self.assertEqual(done.err.count("pp4"), 2)


class BenchAtDepth(Commands):
    def rows(self, *args):
        return json.loads(self.succeed("bench", *args, "-m", self.tiny, "-o", "json").out)

    def test_decode_at_depths_that_nobody_computed(self):
        for fill in ("random", "zeros"):
            rows = self.rows("decode", "--start-position", "0,500", "-n", 4, "-r", 2,
                             "--fill-state", fill)
            self.assertEqual([r["start_position"] for r in rows], [0, 500])
            self.assertGreater(rows[1]["bytes_per_token"], rows[0]["bytes_per_token"])
            for row in rows:
                self.assertEqual((row["n_gen"], row["fill_state"]), (4, fill))
                self.assertEqual(len(row["samples_ns"]), 2)
                self.assertGreater(row["us_per_token"], 0)
                self.assertAlmostEqual(row["tokens_per_s"], 1e6 / row["us_per_token"])

    def test_decode_from_a_saved_state(self):
        state = self.path("bench.state")
        self.succeed("run", "-m", self.tiny, "-no-cnv", "-p", "one two three four five", "-n", 3,
                     "--ignore-eos", "--state", state)
        row, = self.rows("decode", "-n", 2, "-r", 1, "--fill-state", state)
        self.assertGreater(row["start_position"], 3)
        beyond = self.godwit.run("bench", "decode", "-m", self.tiny, "-n", 2, "--fill-state",
                                 state, "--start-position", row["start_position"] + 1)
        self.assert_refused(beyond, 1, "positions", state)

    def test_prefill(self):
        rows = self.rows("prefill", "-p", "4,8", "--start-position", "0,300", "-r", 2)
        self.assertEqual([(r["start_position"], r["n_prompt"]) for r in rows],
                         [(0, 4), (0, 8), (300, 4), (300, 8)])
        # Attention over 300 positions more.
        self.assertGreater(rows[2]["multiply_adds_per_token"], rows[0]["multiply_adds_per_token"])

    def test_markdown_ends_with_the_machine(self):
        text = self.succeed("bench", "decode", "-m", self.tiny, "-n", 2, "-r", 1).text
        lines = text.splitlines()
        self.assertEqual(len({line.count("|") for line in lines[:3]}), 1)
        self.assertRegex(lines[-1], r", KV f16/f16; commit \w+")


class BenchKernel(Commands):
    def rows(self, *args):
        return json.loads(self.succeed("bench", "kernel", "--json", *args).out)

    def test_matrices(self):
        rows = self.rows("--type", "q4_k,f32", "--shape", "256x512", "--tokens", "1,8",
                         "--isa", "generic", "-r", 1)
        self.assertEqual([(r["type"], r["n_tokens"], r["n_planes"]) for r in rows],
                         [("q4_k", 1, 2), ("q4_k", 8, 2), ("f32", 1, 1), ("f32", 8, 1)])
        for row in rows:
            self.assertGreaterEqual(row["n_copies"] * row["bytes"], 512 << 20)
            self.assertAlmostEqual(row["gbps"], row["bytes"] / row["us"] * 1e-3)
            self.assertGreater(row["measured_bandwidth_gbps"], 0)

    def test_attention(self):
        rows = self.rows("--attention", "--kv", "f16,f32/f16", "--positions", "100,200",
                         "--heads", "4x2x32")
        self.assertEqual([(r["type_k"], r["type_v"], r["n_positions"]) for r in rows],
                         [("f16", "f16", 100), ("f16", "f16", 200),
                          ("f32", "f16", 100), ("f32", "f16", 200)])


class BenchPlots(Commands):
    SVG = "{http://www.w3.org/2000/svg}"

    def plot(self, *args):
        """Numbers of points and of lines of the picture, and its texts."""
        path = self.path("bench plot.svg")
        self.succeed("bench", *args, "--plot", path)
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, self.SVG + "svg")
        texts = [element.text for element in root.iter(self.SVG + "text")]
        os.remove(path)
        return (len(list(root.iter(self.SVG + "circle"))),
                len(list(root.iter(self.SVG + "polyline"))), texts)

    def test_decode_with_its_floor(self):
        points, lines, texts = self.plot("decode", "-m", self.tiny, "-n", 2, "-r", 1,
                                         "--start-position", "0,50,200")
        self.assertEqual((points, lines), (3, 2))
        self.assertTrue(any(re.fullmatch(r"floor at [0-9.]+ GB/s", text) for text in texts), texts)
        self.assertIn("position", texts)

    def test_prefill(self):
        points, lines, texts = self.plot("prefill", "-m", self.tiny, "-p", "4,8", "-r", 1,
                                         "--start-position", "0,50")
        self.assertEqual((points, lines), (4, 2))
        self.assertTrue({"pp4", "pp8"} <= set(texts), texts)

    def test_roofline(self):
        points, lines, texts = self.plot("kernel", "--type", "q8_0,f32", "--shape", "256x512",
                                         "--tokens", "1,8,64", "-r", 1)
        self.assertEqual((points, lines), (6, 2))
        self.assertTrue(any(text.startswith("memory, ") for text in texts), texts)
        self.assertTrue(any(text.startswith("cached, ") for text in texts), texts)

    def test_attention(self):
        points, lines, _ = self.plot("kernel", "--attention", "--kv", "f16,f32", "--positions",
                                     "100,200", "--heads", "4x2x32")
        self.assertEqual((points, lines), (4, 3))

    def test_a_place_that_is_none_is_refused_first(self):
        done = self.godwit.run("bench", "decode", "-m", self.tiny, "--plot",
                               self.path("no/where.svg"))
        self.assert_refused(done, 1, "--plot", "no")


class BenchBesidePeer(Commands):
    """Peers are scripts here; each leaves the arguments it got, in order."""

    def peer(self, answer):
        path = self.write("peer.sh", "#!/bin/sh\n[ \"$1\" = --version ] && exit 1\n"
                          f"echo peer \"$@\" >> {self.path('calls')}\n{answer}\n")
        os.chmod(path, 0o700)
        self.write("calls", "")
        return path

    def test_runs_in_turn_and_prints_ratios(self):
        row = '{"n_prompt": 4, "n_gen": 0, "n_depth": 8, "avg_ts": 2.5, "build_commit": "x"}'
        peer = self.peer(f"echo '{row}'")
        found, = json.loads(self.succeed("bench", "-m", self.tiny, "-p", 4, "-n", 0, "-d", 8, "-r",
                                         2, "-t", 1, "--peer", peer, "--peer-arg=-fa",
                                         "--peer-arg=on", "--json").out)
        self.assertEqual(found["peer_samples_ts"], [2.5] * 4)
        self.assertEqual(len(found["samples_ts"]), 4)
        self.assertEqual(found["ratios"], [ours / 2.5 for ours in found["samples_ts"]])
        self.assertLessEqual(found["ratio_min"], found["ratio"])
        with open(self.path("calls")) as file:
            calls = file.read().splitlines()
        self.assertEqual(calls, [f"peer -m {self.tiny} -p 4 -n 0 -d 8 -t 1 -r 1 -o json -fa on"] * 4)

    def test_another_build_of_godwit(self):
        for command, flags in (("decode", ("-n", 2, "--start-position", "0,64")),
                               ("prefill", ("-p", "4,8", "--start-position", "64"))):
            rows = json.loads(self.succeed("bench", command, "-m", self.tiny, *flags, "-r", 1,
                                           "--peer", self.godwit.path, "--json").out)
            self.assertEqual(len(rows), 2)
            for row in rows:
                self.assertEqual(len(row["ratios"]), 2)
                self.assertGreater(row["measured_bandwidth_gbps"], 0)

    def test_a_peer_that_fails_is_told_with_its_last_line(self):
        for answer, words in (("echo no such model >&2; exit 3", ("exit code 3", "no such model")),
                              ("echo hello", ("no rows of a bench",)),
                              ("yes", ("more than", "bytes")),
                              ("echo '{\"n_prompt\": 1}'", ("n_prompt",)),
                              ("echo '{\"n_prompt\": 9, \"n_gen\": 0, \"avg_ts\": 1}'",
                               ("not measured pp4",))):
            with self.subTest(answer=answer):
                done = self.godwit.run("bench", "-m", self.tiny, "-p", 4, "-n", 0, "-r", 1,
                                       "--peer", self.peer(answer))
                self.assert_refused(done, 1, *words)
        done = self.godwit.run("bench", "-m", self.tiny, "--peer", self.path("nobody"))
        self.assert_refused(done, 1, "--peer", "nobody")


class Check(Commands):
    def test_every_step_lies_within_its_bound(self):
        done = self.succeed("check", "-m", self.mixed)
        self.assertIn("every step lies within its bound", done.text)
        self.assertEqual(done.err, "")


class Help(Commands):
    def test_version(self):
        self.assertRegex(self.succeed("--version").text, r"^\d+\.\d+\.\d+\n$")

    def test_no_arguments(self):
        done = self.godwit.run()
        self.assertEqual((done.code, done.out), (2, b""))
        self.assertIn("SUBCOMMAND", done.err)
        self.assertIn("bench", done.err)

    def test_every_command_has_help_with_an_example(self):
        commands = self.succeed("--help").text.split("Subcommands:")[1].split("First steps:")[0]
        listed = [name.replace("-", " ") for name in re.findall(r"^  ([a-z-]+) ", commands, re.M)]
        self.assertGreaterEqual(len(listed), 9)
        for name in listed:
            with self.subTest(command=name):
                done = self.succeed(*name.split(), "--help")
                self.assertRegex(done.text, rf"Examples?:\s+(.*\| )?(.*\n)*.*godwit {name} ")
                self.assertEqual(done.err, "")


if __name__ == "__main__":
    main()
