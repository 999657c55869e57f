"""What the scripts that make tiny random models share: the vocabulary and the layout of files."""
import pathlib
import struct

import gguf
import numpy as np

MERGES = ["Ġ t", "h e", "i n", "Ġt he", "Ġ a", "e r", "o n"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_alphabet():
    """The printable stand-in of each byte in a byte-level BPE vocabulary, in GPT-2's order."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(shifted))]


TOKENS = byte_alphabet() + [m.replace(" ", "") for m in MERGES] + SPECIALS
N_VOCAB = len(TOKENS)

# Settings of transformers' configurations that go with the vocabulary and with exact comparisons.
COMMON = dict(
    vocab_size=N_VOCAB, attn_implementation="eager", use_cache=False, pad_token_id=None,
    bos_token_id=TOKENS.index("<|im_start|>"), eos_token_id=TOKENS.index("<|im_end|>"))


def rope(rope_type="default", theta=10000.0, **rest):
    return dict(rope_type=rope_type, rope_theta=theta, **rest)


def write_vocabulary(writer, architecture, config):
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2" if architecture.startswith("qwen") else "gpt-2")
    writer.add_token_list(TOKENS)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if t in SPECIALS else normal for t in TOKENS])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_add_bos_token(False)


def finish_file(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_logits(path, tokens, logits):
    """tokens [n_tokens], logits [n_tokens, n_vocab]."""
    with open(path, "wb") as file:
        file.write(struct.pack("<II", len(tokens), N_VOCAB))
        file.write(np.asarray(tokens).astype("<i4").tobytes())
        file.write(np.asarray(logits).astype("<f4").tobytes())


def fixture_directory(arguments, name):
    """The directory of the command line, or the one of that name in tests/fixtures; made."""
    default = pathlib.Path(__file__).resolve().parents[1] / "tests/fixtures" / name
    directory = pathlib.Path(arguments[0]) if arguments else default
    directory.mkdir(parents=True, exist_ok=True)
    return directory
