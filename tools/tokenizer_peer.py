"""llama.cpp's tokenizer (package xllamacpp) for any vocabulary: the witness of the fixtures and of
tests/conformance/tokenizer.py. Only a file's tokenizer.* metadata is used, put into a tiny model of
zeros, so that files of a vocabulary alone serve as well as models of many gigabytes."""
import pathlib
import tempfile

import gguf
import numpy as np
import requests
import xllamacpp

WIDTH = 32


def _write_stand_in(source, path):
    """A one-layer llama with the tokenizer of `source`."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, "llama")
    for key, field in reader.fields.items():
        # Phi-3's tokenizer is known by the model's name alone.
        if key != "general.name" and (not key.startswith("tokenizer.") or "chat_template" in key):
            continue
        element = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), field.types[0], element)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    n_tokens = len(reader.fields["tokenizer.ggml.tokens"].data)
    square = np.zeros((WIDTH, WIDTH), np.float16)
    writer.add_tensor("token_embd.weight", np.zeros((n_tokens, WIDTH), np.float16))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", square)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class TokenizerPeer:
    def __init__(self, source):
        self._folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._folder.name) / "vocabulary.gguf"
        _write_stand_in(source, path)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = 256
        params.n_parallel = 1
        params.cpuparams.n_threads = 1
        params.warmup = False
        params.verbosity = 0
        self._server = xllamacpp.Server(params)
        self._session = requests.Session()

    def ids(self, text, parse_special, add_special=False):
        answer = self._session.post(
            f"{self._server.listening_address}/tokenize", timeout=60,
            json={"content": text, "add_special": add_special, "parse_special": parse_special})
        answer.raise_for_status()
        return answer.json()["tokens"]
