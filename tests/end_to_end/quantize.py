"""`godwit quantize` as a user runs it, on tiny synthetic models: every type written, read, run and
checked; which tensor gets which type; what is refused, and that nothing half-done stays behind.
System's python3 only."""

import json
import os
import resource
import signal
import struct
import time

import gguf_editor
from godwit_program import GodwitTest, main

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M",
         "Q4_K_S", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "Q3_K_L", "Q3_K_M", "Q3_K_S", "IQ3_M",
         "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS")


class Quantize(GodwitTest):
    @classmethod
    def setUpClass(cls):
        cls.f32 = cls.synth("f32.gguf", "--shape", "tiny", "--type", "f32", "--seed", "3")
        cls.deep = cls.synth("deep.gguf", "--dim", "256", "--layers", "16", "--heads", "4",
                             "--kv-heads", "1", "--ffn", "256", "--vocab", "300", "--type", "f16",
                             "--untied")
        # 96 columns: no blocks of 256, but of 32.
        cls.narrow = cls.synth("narrow.gguf", "--dim", "96", "--layers", "2", "--heads", "3",
                               "--ffn", "160", "--vocab", "300", "--type", "f32")

    def quantize(self, *args):
        return json.loads(self.succeed("quantize", *args, "--json").out)

    def types(self, *args):
        """Tensor name -> type, without writing."""
        return {t["name"]: t["to"] for t in self.quantize(*args, "--dry-run")["tensors"]}

    def leftovers(self, name):
        return [f for f in os.listdir(self.folder) if f.startswith(name)]


class EveryType(Quantize):
    def test_is_written_read_and_run(self):
        sizes = []
        for name in TYPES:
            with self.subTest(type=name):
                out = self.path(f"out-{name}.gguf")
                summary = self.quantize(self.f32, out, name)
                sizes.append(summary["bits_per_weight"])
                info = json.loads(self.succeed("info", "-m", out, "--json").out)
                self.assertIn("types", info)
                answer = self.succeed("run", "-m", out, "-no-cnv", "-p", "one two", "-n", 2,
                                      "--ignore-eos", "--no-stats", "--temp", 0, "--backend",
                                      "reference")
                self.assertTrue(answer.text.startswith("one two"))
                with open(out, "rb") as file:
                    written = gguf_editor.Gguf(file.read())
                for key, expected in (("general.file_type", summary["file_type"]),
                                      ("general.quantization_version", 2)):
                    self.assertEqual(written.find(key)[2], struct.pack("<I", expected))
        self.assertEqual(len(sizes), len(TYPES))
        self.assertLess(sizes[-1], 4)
        self.assertEqual(sizes[0], 32)

    def test_check_passes_on_what_was_written(self):
        for name in ("Q8_0", "Q4_K_M", "IQ4_XS", "IQ2_XXS"):
            with self.subTest(type=name):
                out = self.path(f"checked-{name}.gguf")
                self.succeed("quantize", self.f32, out, name)
                done = self.succeed("check", "-m", out)
                self.assertIn("every step lies within its bound", done.text)

    def test_finer_types_lose_less(self):
        errors = []
        for name in ("Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "IQ2_XXS"):
            summary = self.quantize(self.f32, self.path("out.gguf"), name, "--pure")
            found = [t["relative_rms_error"] for t in summary["tensors"]
                     if "relative_rms_error" in t]
            errors.append(sum(found) / len(found))
        self.assertEqual(errors, sorted(errors))
        self.assertLess(errors[0], 0.01)
        self.assertLess(errors[-1], 0.4)

    def test_f32_keeps_every_bit_and_the_metadata(self):
        out = self.path("same.gguf")
        self.succeed("quantize", self.f32, out, "F32")
        with open(self.f32, "rb") as file:
            before = gguf_editor.Gguf(file.read())
        with open(out, "rb") as file:
            after = gguf_editor.Gguf(file.read())
        self.assertEqual(before.data, after.data)
        self.assertEqual(before.tensors, after.tensors)
        changed = (b"general.file_type", b"general.quantization_version")
        keep = lambda model: [row for row in model.metadata if row[0] not in changed]
        self.assertEqual(keep(before), keep(after))

    def test_threads_do_not_change_a_bit(self):
        contents = []
        for threads in (1, 2, 3):
            out = self.path("out.gguf")
            self.succeed("quantize", self.f32, out, "Q4_K_M", threads)
            with open(out, "rb") as file:
                contents.append(file.read())
        self.assertEqual(contents[0], contents[1])
        self.assertEqual(contents[0], contents[2])

    def test_instruction_sets_do_not_change_a_bit(self):
        for name in ("Q4_K_M", "IQ4_XS", "IQ3_XXS"):
            contents = []
            for isa in ("generic", ""):
                out = self.path("out.gguf")
                self.succeed("quantize", self.f32, out, name, env={"GODWIT_ISA": isa})
                with open(out, "rb") as file:
                    contents.append(file.read())
            self.assertEqual(contents[0], contents[1])


class Mixes(Quantize):
    def test_q4_k_m_raises_what_llama_cpp_raises(self):
        types = self.types(self.deep, "Q4_K_M")
        raised = {0, 1, 4, 7, 10, 13, 14, 15}  # the first and last eighth, every third between
        for layer in range(16):
            expected = "Q6_K" if layer in raised else "Q4_K"
            for name in ("attn_v", "ffn_down"):
                self.assertEqual(types[f"blk.{layer}.{name}.weight"], expected, (layer, name))
            for name in ("attn_q", "attn_k", "attn_output", "ffn_up", "ffn_gate"):
                self.assertEqual(types[f"blk.{layer}.{name}.weight"], "Q4_K")
            self.assertEqual(types[f"blk.{layer}.attn_norm.weight"], "F32")
        self.assertEqual(types["output.weight"], "Q6_K")
        self.assertEqual(types["token_embd.weight"], "Q4_K")

    def test_other_mixes(self):
        small = self.types(self.deep, "Q4_K_S")
        self.assertEqual([small[f"blk.{i}.attn_v.weight"] for i in range(6)],
                         ["Q5_K"] * 4 + ["Q4_K"] * 2)
        self.assertEqual([small[f"blk.{i}.ffn_down.weight"] for i in range(3)],
                         ["Q5_K"] * 2 + ["Q4_K"])
        tiny = self.types(self.deep, "IQ2_XXS")
        self.assertEqual(tiny["blk.0.attn_v.weight"], "Q4_K")  # four query heads to one
        self.assertEqual(tiny["blk.0.ffn_down.weight"], "Q2_K")
        self.assertEqual(tiny["blk.2.ffn_down.weight"], "IQ2_XXS")
        self.assertEqual(tiny["token_embd.weight"], "Q2_K")
        self.assertEqual(tiny["output.weight"], "Q5_K")
        self.assertEqual(self.types(self.deep, "q8_0")["output.weight"], "Q8_0")

    def test_tied_embeddings_count_as_output(self):
        self.assertEqual(self.types(self.f32, "Q4_K_M")["token_embd.weight"], "Q6_K")

    def test_flags(self):
        pure = self.types(self.deep, "15", "--pure")
        self.assertEqual({pure[n] for n in pure if "norm" not in n}, {"Q4_K"})
        left = self.types(self.deep, "Q4_K_M", "--leave-output-tensor")
        self.assertEqual(left["output.weight"], "F16")
        set_types = self.types(self.deep, "Q4_K_M", "--output-tensor-type", "q8_0",
                               "--token-embedding-type", "Q5_0", "--tensor-type",
                               r"blk\.[01]\.attn_q=q5_1", "--tensor-type", "attn_q=q4_0")
        self.assertEqual(set_types["output.weight"], "Q8_0")
        self.assertEqual(set_types["token_embd.weight"], "Q5_0")
        self.assertEqual(set_types["blk.1.attn_q.weight"], "Q5_1")
        self.assertEqual(set_types["blk.2.attn_q.weight"], "Q4_0")

    def test_rows_that_are_no_whole_blocks(self):
        summary = self.quantize(self.narrow, "Q4_K_M", "--dry-run")
        types = {t["name"]: t for t in summary["tensors"]}
        self.assertEqual(types["blk.0.attn_q.weight"]["to"], "Q5_0")
        self.assertEqual(types["blk.0.attn_q.weight"]["instead_of"], "Q4_K")
        self.assertEqual(types["output.weight"]["to"], "Q8_0")
        self.assertGreater(summary["fallbacks"], 10)
        done = self.succeed("quantize", self.narrow, self.path("narrow-q4.gguf"), "Q4_K_M")
        self.assertIn("rows of 96 are no whole Q4_K blocks", done.err)
        self.assertIn("no whole blocks", done.err.splitlines()[-1])

    def test_a_split_model_becomes_one_file(self):
        with open(self.f32, "rb") as file:
            whole = gguf_editor.Gguf(file.read())
        second = gguf_editor.Gguf(whole.bytes())
        half = len(whole.tensors) // 2
        cut = whole.tensors[half][3]
        second.tensors = [[n, d, t, at - cut] for n, d, t, at in whole.tensors[half:]]
        second.data = whole.data[cut:]
        first = gguf_editor.Gguf(whole.bytes())
        first.tensors, first.data = whole.tensors[:half], whole.data[:cut]
        second.metadata = []
        for number, shard in enumerate((first, second)):
            shard.metadata += [[b"split.no", 2, struct.pack("<H", number)],
                               [b"split.count", 2, struct.pack("<H", 2)],
                               [b"split.tensors.count", 5,
                                struct.pack("<i", len(whole.tensors))]]
            self.write(f"split-0000{number + 1}-of-00002.gguf", shard.bytes())
        one, joined = self.path("one.gguf"), self.path("joined.gguf")
        self.succeed("quantize", self.f32, one, "Q4_0")
        self.succeed("quantize", self.path("split-00001-of-00002.gguf"), joined, "Q4_0")
        with open(one, "rb") as a, open(joined, "rb") as b:
            self.assertEqual(a.read(), b.read())
        done = self.godwit.run("quantize", self.path("split-00001-of-00002.gguf"),
                               self.path("split-00002-of-00002.gguf"), "Q4_0")
        self.assert_refused(done, 1, "the output is the input")


class Output(Quantize):
    def test_name_is_made_from_the_type(self):
        self.succeed("quantize", self.f32, "q4_0")
        self.assertTrue(os.path.exists(self.path("ggml-model-Q4_0.gguf")))

    def test_report(self):
        done = self.succeed("quantize", self.f32, self.path("out.gguf"), "Q4_0", "--verbose")
        self.assertEqual(done.out, b"")
        self.assertRegex(done.err, r"token_embd\.weight +256 x 512  F32 -> Q6_K, 0\.50 -> 0\.10 MiB, "
                                   r"RMS error [\d.]+ %")
        self.assertRegex(done.err.splitlines()[-1],
                         r"^wrote .*out\.gguf in [\d.]+ s: [\d.]+ -> [\d.]+ MiB, "
                         r"[\d.]+ bits per weight as Q4_0")

    def test_dry_run_writes_nothing(self):
        done = self.succeed("quantize", self.f32, self.path("dry.gguf"), "Q4_0", "--dry-run")
        self.assertIn("nothing was written", done.text)
        self.assertEqual(self.leftovers("dry"), [])

    def test_replaces_an_existing_file_only_when_done(self):
        out = self.write("existing.gguf", "precious")
        bad = self.broken_model(float("nan"))
        self.assertEqual(self.godwit.run("quantize", bad, out, "Q4_0").code, 1)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), b"precious")
        self.succeed("quantize", self.f32, out, "Q4_0")
        self.assertGreater(os.path.getsize(out), 1000)
        self.assertEqual(self.leftovers("existing"), ["existing.gguf"])

    def broken_model(self, weight, name="blk.1.ffn_up.weight", index=777):
        with open(self.f32, "rb") as file:
            model = gguf_editor.Gguf(file.read())
        at = model.tensor(name)[3] + 4 * index
        model.data = model.data[:at] + struct.pack("<f", weight) + model.data[at + 4:]
        return self.write("broken.gguf", model.bytes())

    def test_weights_that_are_not_numbers(self):
        for weight, words in ((float("nan"), "finite"), (float("-inf"), "finite"),
                              (1e30, "magnitudes up to 65504")):
            done = self.godwit.run("quantize", self.broken_model(weight), self.path("bad.gguf"),
                                   "Q5_K_M")
            last = done.err.splitlines()[-1]
            self.assertEqual((done.code, done.out), (1, b""))
            self.assertIn("error: tensor 'blk.1.ffn_up.weight', weight 777: ", last)
            self.assertIn(words, last)
            self.assertEqual(self.leftovers("bad"), [])

    def test_full_disk(self):
        def little():
            resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        import subprocess
        done = subprocess.run([self.godwit.path, "quantize", self.f32, self.path("full.gguf"),
                               "F16"], preexec_fn=little, capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write", done.stderr)
        self.assertEqual(self.leftovers("full"), [])

    def test_ctrl_c_leaves_no_file(self):
        model = self.synth("long.gguf", "--dim", "512", "--layers", "8", "--heads", "8", "--ffn",
                           "2048", "--vocab", "8192", "--type", "f16")
        process = self.godwit.start(("quantize", model, self.path("stopped.gguf"), "IQ2_S",
                                     "--pure", "1"))
        for _ in range(1000):
            if self.leftovers("stopped"):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        done = self.godwit.finish(process)
        self.assertEqual(done.code, 130, done.err)
        self.assertIn("interrupted", done.err)
        self.assertEqual(self.leftovers("stopped"), [])


class Refusals(Quantize):
    def refuse(self, *args):
        return self.godwit.run("quantize", *args)

    def test_types_and_arguments(self):
        out = self.path("never.gguf")
        self.assert_refused(self.refuse(self.f32, out, "Q9_Z"), 1, "Q9_Z", "Q4_K_M")
        self.assert_refused(self.refuse(self.f32, out), 1, "expected a type")
        self.assert_refused(self.refuse(self.f32, out, "Q4_0", "many"), 1, "many", "threads")
        self.assert_refused(self.refuse(self.f32, out, "Q4_0", "2", "3"), 1, "'3'")
        self.assert_refused(self.refuse(self.f32, out, "Q4_0", "--tensor-type", "q=nope"), 1,
                            "nope")
        self.assert_refused(self.refuse(self.f32, out, "Q4_0", "--tensor-type", "(=q4_0"), 1,
                            "regular expression")
        self.assert_refused(self.refuse(self.f32), 2)
        self.assert_refused(self.refuse("no-such-model", out, "Q4_0"), 1, "no-such-model")
        self.assert_refused(self.refuse(self.f32, self.f32, "Q4_0"), 1, "the output is the input")
        self.assert_refused(self.refuse(self.f32, self.folder, "Q4_0"), 1, "folder")
        self.assertEqual(self.leftovers("never"), [])

    def test_quantised_input_needs_permission(self):
        q8 = self.path("q8.gguf")
        self.succeed("quantize", self.f32, q8, "Q8_0")
        self.assert_refused(self.refuse(q8, self.path("again.gguf"), "Q4_0"), 1, "Q8_0 already",
                            "--allow-requantize")
        self.succeed("quantize", q8, self.path("again.gguf"), "Q4_0", "--allow-requantize")
        # Nothing to do is no error.
        self.succeed("quantize", q8, self.path("again.gguf"), "Q8_0")


if __name__ == "__main__":
    main()
