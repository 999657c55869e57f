"""llama.cpp (package xllamacpp) as a peer: next-token distributions of token sequences.

Everything is set for accuracy: float KV cache, no flash attention, no prompt cache unless asked for.
Prompts are token ids, so that tokenizers play no part. llama.cpp hands out log-probabilities, that
is logits up to a constant per position; they are normalised again here in double precision.
"""
import os

import numpy as np
import requests
import xllamacpp

from godwit_logits import log_softmax

# A printable ASCII character in every byte-level BPE vocabulary used here.
PLAIN_TOKEN = 64


class LlamaCpp:
    """A loaded model; one sequence at a time. n_ubatch tokens of a prompt are computed together."""

    def __init__(self, path, n_vocab, n_ctx=512, n_ubatch=512):
        self.n_vocab = n_vocab
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = n_ctx
        params.n_parallel = 1
        params.n_ubatch = n_ubatch
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 1
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.fit_params = False
        params.warmup = False
        params.verbosity = 0
        self.server = xllamacpp.Server(params)

    def _complete(self, tokens, n_predict, n_probs, logit_bias, keep=False):
        answer = self.server.handle_completions({
            "prompt": [int(t) for t in tokens], "n_predict": n_predict, "n_probs": n_probs,
            "samplers": ["top_k"], "top_k": 1, "post_sampling_probs": False,
            "cache_prompt": keep, "logit_bias": logit_bias})
        if "choices" not in answer:
            raise RuntimeError(f"llama.cpp did not answer: {answer}")
        return answer["choices"][0]["logprobs"]["content"]

    def next_logprobs(self, tokens, keep=False):
        """Log-probabilities of every token after `tokens`: f64 [n_vocab]. With `keep`, what the
        call before computed is not computed again where it is the beginning of `tokens`."""
        # An end-of-sequence token or half a character would come without probabilities, so
        # another token is forced. Probabilities are taken before the bias is added.
        content = self._complete(tokens, 1, self.n_vocab, [[PLAIN_TOKEN, 1e6]], keep)
        logprobs = np.full(self.n_vocab, -np.inf)
        for entry in content[0]["top_logprobs"]:
            logprobs[entry["id"]] = entry["logprob"]
        if not np.isfinite(logprobs).all():
            raise RuntimeError("llama.cpp left tokens out of the distribution")
        return log_softmax(logprobs)

    def greedy(self, tokens, n_predict, n_probs):
        """The greedy continuation: per token (id, {id: log-probability} of the best n_probs)."""
        return [(step["id"], {e["id"]: e["logprob"] for e in step["top_logprobs"]})
                for step in self._complete(tokens, n_predict, n_probs, [])]

    def tokenize(self, text):
        """Token ids of plain text, as llama.cpp sees it."""
        answer = requests.post(f"{self.server.listening_address}/tokenize", timeout=60,
                               json={"content": text, "parse_special": False})
        answer.raise_for_status()
        return answer.json()["tokens"]
