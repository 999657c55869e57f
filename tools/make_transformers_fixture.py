#!/usr/bin/env python3
"""Makes tests/fixtures/transformers: tiny random models with the logits transformers computes.

usage: make_transformers_fixture.py [OUTPUT_DIRECTORY]

Needs torch, transformers, numpy and gguf, in an environment of their own (about 6 GB):
    python3 -m venv /tmp/fixture-venv
    /tmp/fixture-venv/bin/pip install torch transformers numpy gguf
Each model is seeded, so that the same versions write the same files. The layout of the files is
described in README.md beside them. The conversion follows what llama.cpp expects of a GGUF file;
`tests/conformance/fixture_peers.py` compares llama.cpp's own logits with the ones stored here.
"""
import math
import pathlib
import struct
import sys

import gguf
import numpy as np
import torch
import transformers

N_TOKENS = 56
MERGES = ["Ġ t", "h e", "i n", "Ġt he", "Ġ a", "e r", "o n"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_alphabet():
    """The printable stand-in of each byte in a byte-level BPE vocabulary, in GPT-2's order."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(shifted))]


TOKENS = byte_alphabet() + [m.replace(" ", "") for m in MERGES] + SPECIALS
N_VOCAB = len(TOKENS)

# name -> (architecture, what differs from the common shape). Positions run past the original
# context of every scaled RoPE, and past several periods of its fastest frequencies.
MODELS = {
    "llama": ("llama", dict(tie_word_embeddings=False)),
    "llama_llama3_tied": ("llama", dict(
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=8.0,
                             low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=32))),
    "llama_linear_wide_heads": ("llama", dict(
        tie_word_embeddings=False, hidden_size=48, num_attention_heads=3, num_key_value_heads=1,
        head_dim=32, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0))),
    "llama_yarn": ("llama", dict(
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0,
                             original_max_position_embeddings=16))),
    "qwen2_tied": ("qwen2", dict(
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0))),
    "qwen2_yarn": ("qwen2", dict(
        tie_word_embeddings=False, num_key_value_heads=1,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0,
                             original_max_position_embeddings=16))),
}


def make_model(architecture, differences):
    settings = dict(
        vocab_size=N_VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        rms_norm_eps=1e-5, attn_implementation="eager", use_cache=False,
        bos_token_id=TOKENS.index("<|im_start|>"), eos_token_id=TOKENS.index("<|im_end|>"),
        rope_parameters=dict(rope_type="default", rope_theta=10000.0))
    settings.update(differences)
    if architecture == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings))
    else:
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**settings))
    # The libraries' own initialisation makes all logits nearly equal: nothing would show.
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.copy_(1 + 0.3 * torch.randn_like(weight))
            elif name.endswith("bias"):
                weight.copy_(0.5 * torch.randn_like(weight))
            else:
                gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
                weight.copy_(gain / math.sqrt(weight.shape[1]) * torch.randn_like(weight))
    return model.float().eval()


def pair_rows(weight, n_heads):
    """transformers rotates element i of a head with i + half; GGUF's llama rotates 2i with 2i+1."""
    rows, cols = weight.shape
    half = rows // n_heads // 2
    return weight.reshape(n_heads, 2, half, cols).transpose(0, 2, 1, 3).reshape(rows, cols)


def llama3_factors(rope, head_dim):
    """What llama.cpp stores as rope_freqs: by how much each pair's frequency is divided."""
    frequencies = rope["rope_theta"] ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    wavelengths = 2 * np.pi / frequencies
    original = rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = (original / wavelengths - low) / (high - low)
    between = 1 / ((1 - smooth) / rope["factor"] + smooth)
    factors = np.where(wavelengths < original / high, 1.0,
                       np.where(wavelengths > original / low, rope["factor"], between))
    return factors.astype(np.float32)


def write_metadata(writer, architecture, config, head_dim):
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(N_VOCAB)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if architecture == "llama":
        writer.add_rope_dimension_count(head_dim)
    if head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    rope = config.rope_parameters
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])

    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2" if architecture == "qwen2" else "gpt-2")
    writer.add_token_list(TOKENS)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if t in SPECIALS else normal for t in TOKENS])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_add_bos_token(False)


def write_tensors(writer, architecture, model, head_dim):
    config = model.config
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    # named_parameters lists a tied head once, as the embedding.
    for name, parameter in model.named_parameters():
        weight = parameter.detach().numpy()
        stem, _, kind = name.rpartition(".")
        if stem in whole:
            target = whole[stem]
        else:
            layer, _, part = stem.removeprefix("model.layers.").partition(".")
            target = f"blk.{layer}.{names[part]}"
            if architecture == "llama" and part.endswith(("q_proj", "k_proj")):
                n_heads = (config.num_attention_heads if part.endswith("q_proj")
                           else config.num_key_value_heads)
                weight = pair_rows(weight, n_heads)
        writer.add_tensor(f"{target}.{kind}", np.ascontiguousarray(weight, dtype=np.float32))
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(config.rope_parameters, head_dim))


def write_model(path, architecture, model):
    config = model.config
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(path.stem)
    write_metadata(writer, architecture, config, head_dim)
    write_tensors(writer, architecture, model, head_dim)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(arguments):
    default = pathlib.Path(__file__).resolve().parents[1] / "tests/fixtures/transformers"
    directory = pathlib.Path(arguments[0]) if arguments else default
    directory.mkdir(parents=True, exist_ok=True)
    for seed, (name, (architecture, differences)) in enumerate(MODELS.items(), 1):
        torch.manual_seed(seed)
        model = make_model(architecture, differences)
        tokens = torch.randint(0, N_VOCAB, (N_TOKENS,))
        with torch.no_grad():
            logits = model(tokens[None]).logits[0].float().numpy()
        write_model(directory / f"{name}.gguf", architecture, model)
        with open(directory / f"{name}.logits", "wb") as file:
            file.write(struct.pack("<II", N_TOKENS, N_VOCAB))
            file.write(tokens.numpy().astype("<i4").tobytes())
            file.write(logits.astype("<f4").tobytes())
        print(f"{name}: logits {logits.min():.2f} .. {logits.max():.2f}, "
              f"standard deviation {logits.std():.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
