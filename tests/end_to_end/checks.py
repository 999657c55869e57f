"""`godwit check kernels`, `check parity` and `check needles` as a user runs them: tables, JSON,
exit codes, what is refused. System's python3 only."""

import json

from godwit_program import GodwitTest, main


class Checks(GodwitTest):
    def rows(self, *args):
        done = json.loads(self.succeed("check", *args, "--json").out)
        self.assertTrue(done["holds"])
        self.assertTrue(done["rows"])
        for row in done["rows"]:
            self.assertEqual(set(row), {"name", "check", "cases", "error", "bound", "holds", "at"})
            self.assertTrue(row["holds"], row)
            self.assertGreater(row["cases"], 0)
        return done["rows"]

    def refuse(self, *args, words):
        self.assert_refused(self.godwit.run("check", *args), 1, *words)


class Kernels(Checks):
    def test_lists_every_kernel_of_a_type(self):
        rows = self.rows("kernels", "--quick", "--type", "Q8_0", "--type", "f16")
        names = {row["name"] for row in rows}
        self.assertIn("q8_0 generic", names)
        self.assertIn("f16 generic", names)
        self.assertNotIn("q4_k generic", names)
        checks = {row["check"] for row in rows if row["name"] == "q8_0 generic"}
        self.assertEqual(checks, {"double", "bits", "threads", "rows", "rounding"})

    def test_lowers_the_instruction_sets(self):
        done = self.succeed("check", "kernels", "--quick", "--type", "q8_0",
                            env={"GODWIT_ISA": "generic"})
        self.assertNotIn("avx", done.text)
        self.assertTrue(done.text.endswith("rows hold\n"), done.text)

    def test_refuses_a_type_without_kernels(self):
        self.refuse("kernels", "--type", "q9_z", words=("q9_z", "q4_k"))


class Parity(Checks):
    def test_holds_for_a_tiny_model(self):
        rows = self.rows("parity", "-m", self.tiny, "--tokens", 64, "--depths", "300", "--steps", 2,
                         "--no-tiny")
        by_name = {row["name"]: row for row in rows}
        self.assertLess(by_name["2 steps at 300 positions"]["error"], 1e-6)
        # Fewer bits lie farther from f32, and nobody says how far they may.
        far = [by_name[f"KV {t} from f32"] for t in ("f16", "q8_0", "q4_0")]
        self.assertEqual(sorted(far, key=lambda row: row["error"]), far)
        self.assertIsNone(far[0]["bound"])

    def test_computes_as_the_model_s_flags_say(self):
        rows = self.rows("parity", "-m", self.tiny, "--tokens", 64, "--depths", "300", "--steps", 2,
                         "--no-tiny", "--activation-bits", 8)
        error, = [row["error"] for row in rows if row["name"] == "2 steps at 300 positions"]
        self.assertGreater(error, 1e-6)

    def test_refuses_a_model_that_is_not_there(self):
        self.refuse("parity", "-m", "nowhere.gguf", words=("nowhere.gguf",))

    def test_refuses_a_depth_beyond_all_contexts(self):
        done = self.godwit.run("check", "parity", "-m", self.tiny, "--depths", 2 ** 64 - 1)
        self.assert_refused(done, 2, "--depths", "16777216")


class Needles(Checks):
    def test_a_model_that_knows_nothing_fails(self):
        done = self.godwit.run("check", "needles", "-m", self.tiny, "--lengths", 400, "--text",
                               self.write("text.txt", "a line of words\n" * 2000), "--json")
        self.assertEqual(done.code, 1)
        out = json.loads(done.out)
        self.assertFalse(out["holds"])
        self.assertFalse(out["rows"][0]["holds"])
        self.assertIn("1 of 1 rows leave their bounds", done.err)

    def test_refuses_lengths_and_depths_that_are_none(self):
        for length in (9, 2 ** 64 - 1):
            self.refuse("needles", "-m", self.tiny, "--lengths", length, words=(str(length), "256"))
        self.refuse("needles", "-m", self.tiny, "--depths", "nan", words=("--depths", "nan"))

    def test_refuses_a_text_that_is_too_short(self):
        self.refuse("needles", "-m", self.tiny, "--lengths", 400, "--text",
                    self.write("short.txt", "one line\n"), words=("400", "--text"))


if __name__ == "__main__":
    main()
