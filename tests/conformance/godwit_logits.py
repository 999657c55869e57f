"""The program's diagnostic `logits` for scripts that compare it with something: needs numpy alone,
so that it runs on the machine with the card too."""
import json
import subprocess

import numpy as np

GREEDY_PROMPTS = [
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "The three laws of thermodynamics say that",
    "A list of the planets of the solar system:\n1.",
    "The bar-tailed godwit is a bird that",
]


def log_softmax(logits):
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class Godwit:
    """The binary's diagnostic `logits`: logits after token sequences, or of their greedy
    continuations, as float32 in a file whose shape a JSON line on stdout tells."""

    def __init__(self, binary, work, n_ctx=512, kv="f32"):
        self.binary, self.work, self.n_ctx, self.kv = binary, work, n_ctx, kv
        self.cpu_flags = []  # of calls to the cpu backend
        self.header = {}  # the JSON of the last call

    def logits(self, model, prompts, backend, n_generate=0, *flags):
        """f32 [n_prompts, n_vocab], or [n_prompts, n_generate, n_vocab] and the tokens chosen."""
        request, answer = self.work / "prompts.json", self.work / "logits.bin"
        request.write_text(json.dumps({"prompts": prompts}))
        command = [self.binary, "logits", "-m", model, "-f", request, "-o", answer,
                   "--backend", backend, "-c", str(self.n_ctx), "--kv", self.kv, *flags,
                   *(self.cpu_flags if backend == "cpu" else [])]
        if n_generate:
            command += ["--generate", str(n_generate)]
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, check=True)
        self.header = header = json.loads(done.stdout)
        shape = (len(prompts), n_generate, header["n_vocab"])
        values = np.fromfile(answer, "<f4")
        answer.unlink()
        if n_generate:
            return values.reshape(shape), header["tokens"]
        return values.reshape(shape[0], shape[2])
