#!/usr/bin/env python3
"""Makes qwen3next_mtp and qwen35_mtp in tests/fixtures/transformers_moe: tiny random models with
the head that predicts one token further, the logits transformers computes for the model (.logits),
and those of the head (.mtp_logits).

usage: make_mtp_fixture.py [OUTPUT_DIRECTORY]

transformers has no such head: what it computes here is transformers' own decoder layer, final norm
and lm_head over what the published checkpoints put before them (vLLM's qwen3_next_mtp says how):
W [norm(embedding of the next token); norm(hidden state after the model's final norm)].

.mtp_logits: row p < n - 1 is of position p with token p + 1; the last row is at position n - 1 with
the first token, on the head's own final hidden state of the row before.
"""
import sys

import gguf
import numpy as np
import torch

import make_moe_fixture as moe
from tiny_models import N_VOCAB, TOKENS, finish_file, fixture_directory, write_logits

N_TOKENS = 70
N_LAYERS = 4
DIM = moe.HYBRID["hidden_size"]
# name -> (seed, architecture, transformers' class, configuration)
MODELS = {
    "qwen3next_mtp": (7, "qwen3next", "Qwen3Next", moe.QWEN3NEXT),
    "qwen35_mtp": (11, "qwen35", "Qwen3_5", moe.qwen35(
        [2, 1, 1], intermediate_size=48, tie_word_embeddings=True, linear_num_key_heads=2,
        linear_num_value_heads=4)),
}


def halved(*shape, gain):
    return (gain / np.sqrt(shape[-1]) * torch.randn(shape)).half().float()


class Head:
    def __init__(self, trunk, tail):
        self.trunk, self.tail = trunk, tail
        self.eh_proj = halved(DIM, 2 * DIM, gain=1.0)
        self.enorm, self.hnorm = 1 + 0.3 * torch.randn(2, DIM)

    def normed(self, x, weight):
        eps = self.trunk.config.rms_norm_eps
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight

    def __call__(self, tokens, hidden):
        """The head's final hidden states and logits; hidden: [n, DIM], of the model or its own."""
        embedded = self.trunk.model.embed_tokens(tokens)
        pair = torch.cat([self.normed(embedded, self.enorm), self.normed(hidden, self.hnorm)], -1)
        own = self.tail.model(inputs_embeds=(pair @ self.eh_proj.T)[None]).last_hidden_state[0]
        return own, self.trunk.lm_head(own)


def head_logits(head, tokens):
    with torch.no_grad():
        hidden = head.trunk.model(tokens[None]).last_hidden_state[0][:-1]
        own, logits = head(tokens[1:], hidden)
        row_tokens = torch.cat([tokens[1:], tokens[:1]])
        _, chained = head(row_tokens, torch.cat([hidden, own[-1:]]))
    return row_tokens, torch.cat([logits, chained[-1:]]).numpy()


class TailWriter:
    """Takes a one-layer model's tensors as those of the layer after the last."""

    def __init__(self, writer):
        self.writer = writer

    def add_tensor(self, name, values):
        if name.startswith("blk.0."):
            self.writer.add_tensor(name.replace("blk.0.", f"blk.{N_LAYERS}."), values)
        elif name == "output_norm.weight":
            self.writer.add_tensor(f"blk.{N_LAYERS}.nextn.shared_head_norm.weight", values)


def write_model(path, architecture, family, head):
    config = head.trunk.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(path.stem)
    config.num_hidden_layers, config.layer_types = N_LAYERS + 1, config.layer_types + [moe.FULL]
    moe.write_metadata(writer, architecture, config, "split")
    writer.add_uint32(f"{architecture}.nextn_predict_layers", 1)
    moe.write_tensors(writer, architecture, family, head.trunk, "split")
    moe.write_tensors(TailWriter(writer), architecture, family, head.tail, "split")
    nextn = f"blk.{N_LAYERS}.nextn."
    writer.add_tensor(nextn + "eh_proj.weight", head.eh_proj.numpy().astype(np.float16))
    writer.add_tensor(nextn + "enorm.weight", head.enorm.numpy())
    writer.add_tensor(nextn + "hnorm.weight", head.hnorm.numpy())
    finish_file(writer)


def make(path, seed, architecture, family, configuration):
    torch.manual_seed(seed)
    layers = dict(num_hidden_layers=N_LAYERS, layer_types=[moe.RECURRENT] * 3 + [moe.FULL])
    trunk = moe.make_model(family, configuration | layers, N_TOKENS)
    layers = dict(num_hidden_layers=1, layer_types=[moe.FULL])
    tail = moe.make_model(family, configuration | layers, N_TOKENS)
    head = Head(trunk, tail)
    tokens = torch.randint(0, len(TOKENS), (N_TOKENS,))
    logits, gap = moe.logits_and_router_gap(trunk, tokens)
    noise = moe.step_noise(trunk, tokens, logits)
    gaps = [gap]
    handles = [module.register_forward_hook(lambda module, _, output: gaps.append(
        np.diff(-output[0].sort(descending=True).values.numpy())[:, module.top_k - 1].min()))
        for name, module in tail.named_modules() if name.endswith("mlp.gate")]
    row_tokens, further = head_logits(head, tokens)
    for handle in handles:
        handle.remove()
    print(f"{path.stem}: smallest gap of routers {min(gaps):.1e}, steps differ by {noise:.1e}, "
          f"head's logits {further.min():.2f} .. {further.max():.2f}")
    if min(gaps) < moe.MIN_ROUTER_GAP or noise > moe.MAX_NOISE:
        raise SystemExit("too near a tie, or too noisy; take another seed")
    assert further.shape == (N_TOKENS, N_VOCAB)
    write_logits(path.with_suffix(".logits"), tokens, logits)
    write_logits(path.with_suffix(".mtp_logits"), row_tokens, further)
    write_model(path, architecture, family, head)


def main(arguments):
    directory = fixture_directory(arguments, "transformers_moe")
    for name, model in MODELS.items():
        make(directory / f"{name}.gguf", *model)


if __name__ == "__main__":
    main(sys.argv[1:])
