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
import sys

import gguf
import numpy as np
import torch
import transformers

from tiny_models import (COMMON, N_VOCAB, finish_file, fixture_directory, rope, write_logits,
                         write_vocabulary)

N_TOKENS = 56
# The common shape of the first models, which are F32 throughout, and of the later ones, whose
# matrices are rounded to F16: as many features in half the bytes.
LARGER = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2)
SMALLER = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3)


def wavy(low, high, n=4):
    return [low + (high - low) * ((3 * i) % n) / n for i in range(n)]


# name -> (architecture, transformers' class, what differs from the common shape). Positions run
# past the original context of every scaled RoPE, past several periods of its fastest frequencies,
# and past every window.
MODELS = {
    "llama": ("llama", "Llama", dict(LARGER, tie_word_embeddings=False)),
    "llama_llama3_tied": ("llama", "Llama", dict(
        LARGER, tie_word_embeddings=True,
        rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=32))),
    "llama_linear_wide_heads": ("llama", "Llama", dict(
        LARGER, tie_word_embeddings=False, hidden_size=48, num_attention_heads=3,
        num_key_value_heads=1, head_dim=32, rope_parameters=rope("linear", factor=4.0))),
    "llama_yarn": ("llama", "Llama", dict(
        LARGER, tie_word_embeddings=True,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=16))),
    "qwen2_tied": ("qwen2", "Qwen2", dict(
        LARGER, tie_word_embeddings=True, rope_parameters=rope(theta=1000000.0))),
    "qwen2_yarn": ("qwen2", "Qwen2", dict(
        LARGER, tie_word_embeddings=False, num_key_value_heads=1,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=16))),
    "llama_biases": ("llama", "Llama", dict(
        SMALLER, tie_word_embeddings=False, attention_bias=True, mlp_bias=True)),
    "mistral_window": ("llama", "Mistral", dict(
        SMALLER, tie_word_embeddings=False, sliding_window=9)),
    "mistral3": ("mistral3", "Ministral3", dict(
        SMALLER, tie_word_embeddings=False, head_dim=16, sliding_window=None,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=16,
                             beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                             llama_4_scaling_beta=0.5))),
    "qwen3": ("qwen3", "Qwen3", dict(
        SMALLER, tie_word_embeddings=True, head_dim=16, rope_parameters=rope(theta=1000000.0))),
    "gemma": ("gemma", "Gemma", dict(SMALLER, tie_word_embeddings=True, head_dim=16)),
    "gemma2": ("gemma2", "Gemma2", dict(
        SMALLER, tie_word_embeddings=True, head_dim=16, query_pre_attn_scalar=16,
        sliding_window=8, attn_logit_softcapping=5.0, final_logit_softcapping=3.0)),
    "gemma3": ("gemma3", "Gemma3", dict(
        SMALLER, tie_word_embeddings=True, head_dim=16, query_pre_attn_scalar=16,
        num_hidden_layers=7, intermediate_size=32, sliding_window=10,
        rope_parameters=dict(full_attention=rope("linear", theta=1000000.0, factor=8.0),
                             sliding_attention=rope(theta=10000.0)))),
    "phi3": ("phi3", "Phi3", dict(
        SMALLER, tie_word_embeddings=False, sliding_window=None,
        rope_parameters=rope(partial_rotary_factor=1.0))),
    "phi3_longrope_partial": ("phi3", "Phi3", dict(
        SMALLER, tie_word_embeddings=True, hidden_size=64, num_attention_heads=4,
        num_hidden_layers=2, sliding_window=None, original_max_position_embeddings=32,
        rope_parameters=rope("longrope", partial_rotary_factor=0.5, factor=2.0,
                             original_max_position_embeddings=32,
                             long_factor=wavy(1.5, 6.0), short_factor=wavy(1.0, 1.5)))),
    "phi3_window": ("phi3", "Phi3", dict(
        SMALLER, tie_word_embeddings=False, num_hidden_layers=2, sliding_window=7,
        rope_parameters=rope(partial_rotary_factor=1.0))),
    "granite": ("granite", "Granite", dict(
        SMALLER, tie_word_embeddings=True, embedding_multiplier=6.0, residual_multiplier=0.4,
        attention_multiplier=0.2, logits_scaling=4.0)),
    "olmo2": ("olmo2", "Olmo2", dict(SMALLER, tie_word_embeddings=False)),
    "olmo3": ("olmo2", "Olmo3", dict(
        SMALLER, tie_word_embeddings=False, num_hidden_layers=5, sliding_window=9)),
    "smollm3": ("smollm3", "SmolLM3", dict(
        SMALLER, tie_word_embeddings=True, num_hidden_layers=5, use_sliding_window=False,
        no_rope_layer_interval=4)),
}

# Converters permute q and k of these, so that RoPE turns adjacent dimensions.
PAIRED = ("llama", "mistral3", "granite", "smollm3")


def make_model(family, differences):
    settings = dict(
        COMMON, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        rms_norm_eps=1e-5, rope_parameters=rope())
    settings.update(differences)
    config = "Gemma3Text" if family == "Gemma3" else family
    model = getattr(transformers, family + "ForCausalLM")(
        getattr(transformers, config + "Config")(**settings))
    # The libraries' own initialisation makes all logits nearly equal: nothing would show.
    norm_centre = 0.0 if family.startswith("Gemma") else 1.0
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.copy_(norm_centre + 0.3 * torch.randn_like(weight))
            elif name.endswith("bias"):
                weight.copy_(0.5 * torch.randn_like(weight))
            else:
                gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
                weight.copy_(gain / math.sqrt(weight.shape[1]) * torch.randn_like(weight))
                if differences["intermediate_size"] != LARGER["intermediate_size"]:
                    weight.copy_(weight.half().float())
    return model.float().eval()


def pair_rows(weight, n_heads):
    """transformers rotates element i of a head with i + half; GGUF's llama rotates 2i with 2i+1.
    weight: [rows, cols], or a bias [rows]."""
    rows = weight.shape[0]
    pairs = weight.reshape(n_heads, 2, rows // n_heads // 2, -1)
    return pairs.transpose(0, 2, 1, 3).reshape(weight.shape)


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


def full_rope(config):
    """The RoPE of layers without a window."""
    parameters = config.rope_parameters
    return parameters.get("full_attention", parameters)


def write_rope(writer, architecture, config, head_dim):
    rope = full_rope(config)
    writer.add_rope_freq_base(rope["rope_theta"])
    if architecture in PAIRED or architecture == "phi3":
        writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    if "sliding_attention" in config.rope_parameters:
        writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if "mscale_all_dim" in rope:
        writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
    if "llama_4_scaling_beta" in rope:
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if rope["rope_type"] == "longrope":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        original = rope["original_max_position_embeddings"]
        factor = config.max_position_embeddings / original
        writer.add_rope_scaling_attn_factors(
            math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0)


def write_windows_and_scales(writer, architecture, config):
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "olmo2" and getattr(config, "layer_types", None):
        writer.add_sliding_window_pattern([t == "sliding_attention" for t in config.layer_types])
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if architecture == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)


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
    if head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    write_rope(writer, architecture, config, head_dim)
    write_windows_and_scales(writer, architecture, config)
    write_vocabulary(writer, architecture, config)


def tensor_names(architecture):
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv",
             "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
             "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
             "input_layernorm": "attn_norm"}
    if architecture in ("gemma2", "gemma3", "olmo2"):
        names |= {"post_attention_layernorm": "post_attention_norm",
                  "pre_feedforward_layernorm": "ffn_norm",
                  "post_feedforward_layernorm": "post_ffw_norm"}
    else:
        names |= {"post_attention_layernorm": "ffn_norm"}
    return names


def converted(weight, architecture, part, config):
    if architecture in PAIRED and part.endswith(("q_proj", "k_proj")):
        n_heads = (config.num_attention_heads if part.endswith("q_proj")
                   else config.num_key_value_heads)
        weight = pair_rows(weight, n_heads)
    if architecture.startswith("gemma") and "norm" in part:
        weight = weight + 1
    return weight


def write_tensors(writer, architecture, model, head_dim):
    config = model.config
    names = tensor_names(architecture)
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    # named_parameters lists a tied head once, as the embedding.
    for name, parameter in model.named_parameters():
        weight = parameter.detach().numpy()
        stem, _, kind = name.rpartition(".")
        if stem in whole:
            target, part = whole[stem], stem
        else:
            layer, _, part = stem.removeprefix("model.layers.").partition(".")
            target = f"blk.{layer}.{names[part]}"
        weight = converted(weight, architecture, part, config)
        halved = weight.astype(np.float16)
        stored = halved if weight.ndim == 2 and (halved == weight).all() else weight
        writer.add_tensor(f"{target}.{kind}", np.ascontiguousarray(stored))
    rope = full_rope(config)
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, head_dim))
    if rope["rope_type"] == "longrope":
        for length in ("long", "short"):
            writer.add_tensor(f"rope_factors_{length}.weight",
                              np.array(rope[f"{length}_factor"], dtype=np.float32))


def write_model(path, architecture, model):
    config = model.config
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads)
    writer = gguf.GGUFWriter(path, architecture)
    # llama.cpp looks up Phi-3's own tokens in any file that has the name.
    writer.add_name(path.stem.replace("phi3", "phi"))
    write_metadata(writer, architecture, config, head_dim)
    write_tensors(writer, architecture, model, head_dim)
    finish_file(writer)


def main(arguments):
    directory = fixture_directory(arguments, "transformers")
    for seed, (name, (architecture, family, differences)) in enumerate(MODELS.items(), 1):
        torch.manual_seed(seed)
        model = make_model(family, differences)
        tokens = torch.randint(0, N_VOCAB, (N_TOKENS,))
        with torch.no_grad():
            logits = model(tokens[None]).logits[0].float().numpy()
        write_model(directory / f"{name}.gguf", architecture, model)
        write_logits(directory / f"{name}.logits", tokens, logits)
        print(f"{name}: logits {logits.min():.2f} .. {logits.max():.2f}, "
              f"standard deviation {logits.std():.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
