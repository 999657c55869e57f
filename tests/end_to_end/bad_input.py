"""What a user or a file can get wrong: one clear line, an exit code, no crash, and no memory taken
on the file's word. Needs the system's python3 only."""

import os
import struct

import gguf_editor
from godwit_program import GodwitTest, main

HUGE = 1 << 60
MIB = 1 << 20
READERS = (("info",), ("tokenize", "-p", "x"), ("run", "-p", "x", "-n", "1"))


class Files(GodwitTest):
    """Defects of a model file, each through the commands that read one."""

    def edited(self):
        with open(self.tiny, "rb") as file:
            return gguf_editor.Gguf(file.read())

    def refuse(self, path, *words, commands=READERS):
        for name, *args in commands:
            with self.subTest(command=name):
                done = self.godwit.run_limited(name, "-m", path, *args)
                self.assert_refused(done, 1, *words)
                if self.godwit.can_limit:
                    self.assertLess(done.peak_bytes, 100 * MIB)

    def refuse_bytes(self, content, *words, commands=READERS):
        self.refuse(self.write("bad.gguf", content), *words, commands=commands)

    def test_missing_file_and_unknown_name(self):
        self.refuse(self.path("missing.gguf"), "missing.gguf", "no such file")
        self.refuse("smollm9", "smollm9", "smollm2")
        self.refuse("line\nbreak", "line\\nbreak")

    def test_directory_and_device(self):
        self.refuse(self.folder, self.folder)
        self.refuse("/dev/null", "/dev/null")

    def test_empty_file(self):
        self.refuse_bytes(b"", "bad.gguf")

    def test_html_page(self):
        self.refuse_bytes(b"<!DOCTYPE html><html><body>Not found</body></html>" * 50, "bad.gguf")

    def test_big_endian_file(self):
        self.refuse_bytes(b"GGUF" + struct.pack(">IQQ", 3, 20, 30) + bytes(4096), "endian")

    def test_unknown_version(self):
        model = self.edited()
        model.version = 77
        self.refuse_bytes(model.bytes(), "77")

    def test_truncation_anywhere(self):
        model = self.edited()
        whole = model.bytes()
        middle = model.header_bytes // 2
        for size in (3, 4, 12, 23, 30, middle, model.header_bytes - 1, model.header_bytes + 1,
                     len(whole) - len(model.data) // 2, len(whole) - 1):
            with self.subTest(size=size):
                self.refuse_bytes(whole[:size], "bad.gguf", commands=READERS[:1])
        self.refuse_bytes(whole[:-1], "bad.gguf")

    def test_counts_that_lie(self):
        model = self.edited()
        for n in (HUGE, (1 << 64) - 1, 1 << 32):
            with self.subTest(count=n):
                self.refuse_bytes(model.bytes(n_tensors=n))
                self.refuse_bytes(model.bytes(n_metadata=n))

    def test_lengths_that_lie(self):
        for n in (HUGE, (1 << 64) - 1, 1 << 33):
            with self.subTest(length=n):
                model = self.edited()
                model.set("general.name", gguf_editor.STRING, struct.pack("<Q", n) + b"abc")
                self.refuse_bytes(model.bytes())
                model = self.edited()
                model.set("general.name", gguf_editor.ARRAY, struct.pack("<IQ", 4, n) + bytes(64))
                self.refuse_bytes(model.bytes())

    def test_arrays_within_arrays_do_not_recurse_deeply(self):
        model = self.edited()
        nested = struct.pack("<IQ", gguf_editor.ARRAY, 1) * 200000
        model.set("general.name", gguf_editor.ARRAY, nested + struct.pack("<IQ", 4, 0))
        self.refuse_bytes(model.bytes())

    def test_duplicate_key(self):
        model = self.edited()
        model.metadata.append(list(model.find("general.architecture")))
        self.refuse_bytes(model.bytes(), "general.architecture")

    def test_unknown_value_type(self):
        model = self.edited()
        model.set("general.name", 99, bytes(8))
        self.refuse_bytes(model.bytes(), "99", "general.name")

    def test_missing_key(self):
        model = self.edited()
        model.drop("llama.block_count")
        self.refuse_bytes(model.bytes(), "llama.block_count", commands=READERS[:1])

    def test_wrong_type_of_key(self):
        model = self.edited()
        model.set("llama.block_count", gguf_editor.STRING, gguf_editor.string("two"))
        self.refuse_bytes(model.bytes(), "llama.block_count", commands=READERS[:1])

    def test_absurd_sizes(self):
        for key, value in (("block_count", 0), ("block_count", 0xFFFFFFFF),
                           ("embedding_length", 0), ("embedding_length", 1 << 31),
                           ("attention.head_count", 0), ("attention.head_count", 3),
                           ("attention.head_count_kv", 0), ("attention.key_length", 0),
                           ("attention.key_length", 1 << 31), ("context_length", 0),
                           ("feed_forward_length", 0xFFFFFFFF)):
            with self.subTest(key=key, value=value):
                model = self.edited()
                model.set("llama." + key, gguf_editor.UINT32, struct.pack("<I", value))
                self.refuse_bytes(model.bytes(), commands=(READERS[0], READERS[2]))

    def test_unsupported_architecture(self):
        model = self.edited()
        model.set("general.architecture", gguf_editor.STRING, gguf_editor.string("mamba"))
        self.refuse_bytes(model.bytes(), "mamba", commands=(READERS[0], READERS[2]))

    def test_names_from_the_file_cannot_break_the_line(self):
        model = self.edited()
        model.set("general.architecture", gguf_editor.STRING,
                  gguf_editor.string("a\nerror: b\x1b[31m" + "c" * 5000))
        self.refuse_bytes(model.bytes(), commands=(READERS[0], READERS[2]))

    def test_unsupported_tensor_type(self):
        for kind in (36, 37, 4, 5, 0xFFFFFFFF):
            with self.subTest(type=kind):
                model = self.edited()
                model.tensor("blk.0.attn_q.weight")[2] = kind
                self.refuse_bytes(model.bytes(), "blk.0.attn_q.weight",
                                  commands=(READERS[0], READERS[2]))

    def test_tensors_that_overlap_or_lie_outside(self):
        model = self.edited()
        model.tensors[3][3] = model.tensors[2][3]
        self.refuse_bytes(model.bytes(), model.tensors[3][0].decode())
        for offset in (HUGE, (1 << 64) - 32, align_down(len(model.data))):
            with self.subTest(offset=offset):
                model = self.edited()
                model.tensors[-1][3] = offset
                self.refuse_bytes(model.bytes(), model.tensors[-1][0].decode())

    def test_dimensions_that_overflow(self):
        for dims in ([1 << 32, 1 << 32], [256, 1 << 56], [0, 256], [1 << 63, 2], [256] * 5, []):
            with self.subTest(dims=dims):
                model = self.edited()
                model.tensor("blk.0.attn_q.weight")[1] = dims
                self.refuse_bytes(model.bytes(), "blk.0.attn_q.weight")

    def test_missing_tensor_and_wrong_shape(self):
        model = self.edited()
        model.tensors.remove(model.tensor("blk.1.ffn_down.weight"))
        self.refuse_bytes(model.bytes(), "blk.1.ffn_down.weight",
                          commands=(READERS[0], READERS[2]))
        model = self.edited()
        model.tensor("blk.1.ffn_down.weight")[1].reverse()
        self.refuse_bytes(model.bytes(), "blk.1.ffn_down.weight",
                          commands=(READERS[0], READERS[2]))

    def test_missing_shard(self):
        model = self.edited()
        model.metadata.append([b"split.count", 2, struct.pack("<H", 3)])
        model.metadata.append([b"split.no", 2, struct.pack("<H", 0)])
        path = self.write("bad-00001-of-00003.gguf", model.bytes())
        self.refuse(path, "00002-of-00003")


def align_down(n):
    return n // 32 * 32


class Settings(GodwitTest):
    """Defects of flags and environment: 2 is wrong usage, 1 a value that turns out impossible."""

    def refuse(self, code, args, *words, env=None):
        done = self.godwit.run_limited(*args, env=env)
        self.assert_refused(done, code, *words)

    def run_with(self, *args):
        return ("run", "-m", self.tiny, "-no-cnv", "-p", "hello", "-n", "1", *args)

    def test_empty_prompt(self):
        self.refuse(1, ("run", "-m", self.tiny, "-p", ""), "prompt is empty")
        self.refuse(1, ("run", "-m", self.tiny), "prompt is empty")
        self.refuse(1, ("run", "-m", self.tiny, "-f", "/dev/null"), "prompt is empty")

    def test_prompt_files(self):
        for path in (self.path("none.txt"), self.folder, "/dev/zero"):
            with self.subTest(path=path):
                self.refuse(1, ("run", "-m", self.tiny, "-f", path), path)

    def test_context_too_large_for_memory(self):
        # 256 KiB of KV a position: terabytes.
        wide = self.synth("wide.gguf", "--dim", 64, "--layers", 8, "--heads", 64, "--kv-heads", 64,
                          "--head-dim", 128, "--ffn", 64, "--vocab", 512, "--type", "q4_0")
        for command in (("run", "-p", "x"), ("info",), ("chat",)):
            with self.subTest(command=command[0]):
                self.refuse(1, (command[0], "-m", wide, "-c", "16000000", *command[1:]),
                            "16000000", "does not fit")

    def test_context_beyond_all_bounds(self):
        for value in ("17000000", "18446744073709551615"):
            self.refuse(1, self.run_with("-c", value), value)
        for value in ("-1", "18446744073709551616", "1e3", ""):
            self.refuse(2, self.run_with("-c", value))

    def test_prompt_longer_than_the_context(self):
        self.refuse(1, self.run_with("-c", "4", "-p", "word " * 100), "the context holds 4")

    def test_backend(self):
        self.refuse(1, self.run_with("--backend", "cuda9"), "cuda9", "cpu", "reference")

    def test_a_card_that_is_not_there(self):
        self.refuse(1, self.run_with("--backend", "cuda"), "cuda: ",
                    env={"CUDA_VISIBLE_DEVICES": ""})

    def test_kv_type(self):
        for flags in (("-ctk", "q3"), ("-ctv", "q5_1"), ("--kv", "nonsense"), ("-ctk", "")):
            with self.subTest(flags=flags):
                self.refuse(1, self.run_with(*flags), "KV type", "f16")
        self.refuse(2, self.run_with("--kv", "f32", "-ctk", "f16"), "--kv")

    def test_kv_types_of_blocks_that_heads_do_not_fill(self):
        odd = self.synth("odd.gguf", "--dim", 160, "--layers", 1, "--heads", 2, "--kv-heads", 2,
                         "--head-dim", 80, "--ffn", 64, "--vocab", 512, "--type", "f16")
        for backend in ("cpu", "reference"):
            for flags in (("-ctk", "q8_0"), ("-ctv", "q4_0")):
                with self.subTest(backend=backend, flags=flags):
                    self.refuse(1, ("run", "-m", odd, "-p", "x", "-n", "1", "--backend", backend,
                                    *flags), "blocks of 32", "heads of 80")

    def test_instruction_set(self):
        for value in ("avx9", "AVX2", "generic "):
            self.refuse(1, self.run_with(), "GODWIT_ISA", "generic", env={"GODWIT_ISA": value})

    def test_sampler_values(self):
        for flags in (("--temp", "nan"), ("--temp", "inf"), ("--top-p", "nan"),
                      ("--repeat-penalty", "0"), ("--repeat-penalty", "-1"),
                      ("--dry-allowed-length", "-1"), ("--samplers", "top_k;tempr"),
                      ("-l", "5"), ("-l", "5+-1"), ("-l", "x+1"), ("-l", "-5+1"), ("-l", "5+nan"),
                      ("-l", "99999999999+1"), ("-l", "512+1")):
            with self.subTest(flags=flags):
                self.refuse(1, self.run_with(*flags))
        # Before the model is even opened, so that a typing error costs no long load.
        self.refuse(1, ("run", "-m", "smollm9", "-p", "x", "--temp", "nan"), "temperature")

    def test_numbers(self):
        for flags in (("--temp", "warm"), ("--top-k", "1.5"), ("-n", "5x"), ("-s", "1" * 30),
                      ("-t", "-1"), ("-t", "5000"), ("-ub", "0"), ("-ub", "9000"), ("-t", "")):
            with self.subTest(flags=flags):
                self.refuse(2, self.run_with(*flags), "--")

    def test_unknown_flags_name_the_nearest(self):
        for flag, nearest in (("--tempp", "--temp"), ("--no-display-promt", "--no-display-prompt"),
                              ("-no-cvn", "-no-cnv"), ("--ctxsize=5", "--ctx-size"),
                              ("-ctx", "-ct"), ("--flash", "--")):
            with self.subTest(flag=flag):
                self.refuse(2, self.run_with(flag), flag.split("=")[0] + "'", nearest)
        self.refuse(2, self.run_with("--rope-scale", "4"), "--rope-scale")

    def test_unknown_command_and_extra_argument(self):
        self.refuse(2, ("rum",), "rum", "run")
        self.refuse(2, ("--versio",), "--version")
        self.refuse(2, self.run_with("extra"), "extra")
        self.refuse(2, ("run", "-p", "x"), "--model or --hf-repo is required")
        self.refuse(2, ("run", "-m"), "--model")

    def test_bench_flags(self):
        for flags in (("-o", "xml"), ("-pg", "4"), ("-pg", "4,2,1"), ("-pg", "-1,2"),
                      ("-pg", "0,0"), ("-p", "0", "-n", "0"), ("-p", "99999999")):
            with self.subTest(flags=flags):
                self.refuse(1, ("bench", "-m", self.tiny, *flags))
        for flags in (("-r", "0"), ("-p", "4,x"), ("-n", "-4")):
            with self.subTest(flags=flags):
                self.refuse(2, ("bench", "-m", self.tiny, *flags))

    def test_bench_at_depth_flags(self):
        for command in ("decode", "prefill"):
            for flags in (("-o", "xml"), ("--fill-state", "nothing"), ("--fill-state", self.tiny),
                          ("--start-position", "9999999"), ("--start-position", "9", "-c", "9")):
                with self.subTest(command=command, flags=flags):
                    self.refuse(1, ("bench", command, "-m", self.tiny, *flags))
            for flags in (("-r", "0"), ("--start-position", "4,x"), ("--start-position", "-1")):
                with self.subTest(command=command, flags=flags):
                    self.refuse(2, ("bench", command, "-m", self.tiny, *flags))
        self.refuse(1, ("bench", "prefill", "-m", self.tiny, "-p", "0"), "-p 0")
        self.refuse(2, ("bench", "prefil", "-m", self.tiny), "prefil")

    def test_bench_kernel_flags(self):
        for flags in (("--type", "q9"), ("--shape", "64"), ("--shape", "64x100"), ("-o", "xml"),
                      ("--isa", "sse"), ("--planes", "3"), ("--tokens", "0"),
                      ("--attention", "--kv", "q9"), ("--attention", "--heads", "5x2x64"),
                      ("--attention", "--positions", "0")):
            with self.subTest(flags=flags):
                self.refuse(1, ("bench", "kernel", *flags))
        self.refuse(2, ("bench", "kernel", "-r", "0"))

    def test_synth_flags(self):
        out = self.path("never.gguf")
        for flags in (("--shape", "nope"), ("--shape", "tiny", "--type", "q9"),
                      ("--shape", "tiny", "--tensor-type", "x"), ("--dim", "64"),
                      ("--shape", "tiny", "--heads", "3"), ("--shape", "tiny", "--layers", "0")):
            with self.subTest(flags=flags):
                self.refuse(1, ("synth", *flags, "-o", out))
        self.assertFalse(os.path.exists(out))

    def test_logits_input(self):
        out = self.path("logits.bin")
        for text in ("", "[]", "{}", '{"prompts": 5}', '{"prompts": [5]}', '{"prompts": [[]]}',
                     '{"prompts": [["a"]]}', '{"prompts": [[4294967297]]}', '{"prompts": [[-1]]}',
                     '{"prompts": [[512]]}', '{"prompts": [[1.5]]}', "[" * 100000):
            with self.subTest(text=text[:40]):
                path = self.write("prompts.json", text)
                self.refuse(1, ("logits", "-m", self.tiny, "-f", path, "-o", out))
        good = self.write("prompts.json", '{"prompts": [[1]]}')
        self.refuse(1, ("logits", "-m", self.tiny, "-f", good, "-o", self.path("no/such/dir")))

    def test_chat_template_file(self):
        broken = self.write("broken.jinja", "{% if %}")
        self.refuse(1, ("run", "-m", self.tiny, "-p", "x", "--chat-template-file", broken))
        self.refuse(1, ("chat", "-m", self.tiny, "--chat-template-file", broken))
        self.refuse(1, ("chat", "-m", self.tiny, "--chat-template-file", self.path("no.jinja")))
        tools = self.write("tools.json", "{not json")
        self.refuse(1, ("run", "-m", self.tiny, "-p", "x", "--tools", tools))

    def test_environment_twin_is_named_when_its_value_is_wrong(self):
        self.refuse(2, self.run_with(), "GODWIT_TEMP", env={"GODWIT_TEMP": "warm"})
        self.refuse(2, self.run_with(), "LLAMA_ARG_THREADS", env={"LLAMA_ARG_THREADS": "x"})


if __name__ == "__main__":
    main()
