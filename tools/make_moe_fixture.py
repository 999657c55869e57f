#!/usr/bin/env python3
"""Makes tests/fixtures/transformers_moe: tiny random models with experts, or with recurrent layers,
and the logits transformers computes for them.

usage: make_moe_fixture.py [OUTPUT_DIRECTORY]

Needs what make_transformers_fixture.py needs. Names, shapes and the order of rows are those that
llama.cpp's converter writes for the published models; what is not obvious about them is in
README.md beside the files. `tests/conformance/fixture_peers.py` compares llama.cpp's own logits
with the ones stored here.
"""
import math
import sys

import gguf
import numpy as np
import torch
import transformers

from tiny_models import (COMMON, N_VOCAB, TOKENS, finish_file, fixture_directory, rope,
                         write_logits, write_vocabulary)

FULL, RECURRENT, WINDOW = "full_attention", "linear_attention", "sliding_attention"

# Rounding in another order must not change which experts are used: no token's last chosen and
# first refused router logit may lie closer together. Nor may the logits of one prompt and of single
# steps differ by more: where a query is nearly orthogonal to the only key so far, the norm after
# the recurrence magnifies what rounding left. Seeds are chosen so that both hold.
MIN_ROUTER_GAP = 2e-4
MAX_NOISE = 3e-5
N_STEPS = 24

EXPERTS = dict(num_experts=16, num_experts_per_tok=4, moe_intermediate_size=16)
HYBRID = dict(
    hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=32, rms_norm_eps=1e-6,
    linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16)
QWEN3NEXT = dict(
    HYBRID, **EXPERTS, num_hidden_layers=8, layer_types=([RECURRENT] * 3 + [FULL]) * 2,
    linear_num_key_heads=2, linear_num_value_heads=4, intermediate_size=48,
    shared_expert_intermediate_size=32, tie_word_embeddings=False,
    rope_parameters=rope(theta=10000.0, partial_rotary_factor=0.25))


def qwen35(sections, **rest):
    return dict(HYBRID, rope_parameters=rope(
        theta=10000.0, partial_rotary_factor=0.25, mrope_section=sections,
        mrope_interleaved=True), **rest)


# name -> (seed, architecture, transformers' class, number of tokens, configuration). Lengths run
# past one and more chunks of 64, and are no multiples of anything.
MODELS = {
    "qwen3next": (53, "qwen3next", "Qwen3Next", 200, QWEN3NEXT),
    "qwen3next_ssm_in": (53, "qwen3next", "Qwen3Next", 200, QWEN3NEXT),
    "qwen35": (58, "qwen35", "Qwen3_5", 137, qwen35(
        [2, 1, 1], num_hidden_layers=5, intermediate_size=48, tie_word_embeddings=True,
        layer_types=[RECURRENT, FULL, RECURRENT, RECURRENT, FULL],
        linear_num_key_heads=3, linear_num_value_heads=3)),
    "qwen35moe": (45, "qwen35moe", "Qwen3_5Moe", 137, qwen35(
        [2, 1, 1], **EXPERTS, num_hidden_layers=6, shared_expert_intermediate_size=32,
        tie_word_embeddings=False, layer_types=([RECURRENT] * 2 + [FULL]) * 2,
        linear_num_key_heads=2, linear_num_value_heads=6)),
    "qwen3moe": (6, "qwen3moe", "Qwen3Moe", 56, dict(
        EXPERTS, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        num_hidden_layers=3, intermediate_size=48, norm_topk_prob=True, rms_norm_eps=1e-6,
        tie_word_embeddings=False, rope_parameters=rope(theta=1000000.0))),
    # The base makes YaRN's slow end 2.999998: rounded up, as llama.cpp does, or not, as gpt-oss
    # does, is then the same.
    "gpt_oss": (17, "gpt-oss", "GptOss", 56, dict(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        num_hidden_layers=4, num_local_experts=8, num_experts_per_tok=2, intermediate_size=16,
        rms_norm_eps=1e-5, tie_word_embeddings=False, sliding_window=9,
        layer_types=[WINDOW, FULL] * 2,
        rope_parameters=rope("yarn", theta=146.2229, factor=4.0, beta_fast=32.0,
                             beta_slow=1.0, truncate=False,
                             original_max_position_embeddings=16))),
}

# How much wider than 1 / sqrt(columns) the weights of these are, so that attention and routing are
# decided, and gpt-oss's clamp at 7 shows.
GAINS = {"embed_tokens": 1.5, "q_proj": 1.5, "k_proj": 1.5, "conv1d": 2.5,
         "mlp.gate.": 2.0, "mlp.router": 2.0}
GPT_OSS_GAINS = {"gate_up_proj": 3.0, "down_proj": 0.3}


def initial(name, shape, family):
    """Weights of which every part of the computation shows in the logits."""
    noise = torch.randn(shape)
    if name.endswith("A_log"):
        return torch.empty(shape).uniform_(0.5, 8.0).log()
    if name.endswith("dt_bias"):
        # The step is softplus of this: with the above, a state fades within 1 to 1000 tokens.
        step = torch.empty(shape).uniform_(math.log(0.002), math.log(0.1)).exp()
        return step + torch.log(-torch.expm1(-step))
    if name.endswith("sinks"):
        return noise
    if "norm" in name:
        from_zero = family.startswith(("Qwen3Next", "Qwen3_5")) and "linear_attn" not in name
        return (0.0 if from_zero else 1.0) + 0.3 * noise
    if name.endswith("bias"):
        return 0.3 * noise
    gains = GAINS | (GPT_OSS_GAINS if family == "GptOss" else {})
    gain = next((g for part, g in gains.items() if part in name), 1.0)
    transposed = family == "GptOss" and noise.ndim == 3
    weight = gain / math.sqrt(shape[1] if transposed else shape[-1]) * noise
    return weight if stays_f32(name) else weight.half().float()


def stays_f32(name):
    """Of the matrices: routers, convolutions and biases."""
    return name.endswith("bias") or any(
        part in name for part in ("mlp.gate.", "mlp.router", "shared_expert_gate", "conv1d"))


def make_model(family, configuration, n_tokens):
    settings = dict(COMMON, max_position_embeddings=256 if n_tokens > 64 else 64)
    settings.update(configuration)
    config = family + "Text" if family.startswith("Qwen3_5") else family
    model = getattr(transformers, family + "ForCausalLM")(
        getattr(transformers, config + "Config")(**settings))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(initial(name, weight.shape, family))
    return model.float().eval()


def logits_and_router_gap(model, tokens):
    """Logits [n_tokens, n_vocab], and the smallest gap between experts taken and left."""
    gaps = [math.inf]

    def see_router(module, _, output):
        ordered = output[0].sort(descending=True).values
        gaps.append((ordered[:, module.top_k - 1] - ordered[:, module.top_k]).min().item())

    hooks = [module.register_forward_hook(see_router)
             for name, module in model.named_modules() if name.endswith(("mlp.gate", "mlp.router"))]
    with torch.no_grad():
        logits = model(tokens[None]).logits[0].float().numpy()
    for hook in hooks:
        hook.remove()
    return logits, min(gaps)


def step_noise(model, tokens, logits):
    """The largest difference of the first logits when tokens come one at a time."""
    differences, cache = [], None
    with torch.no_grad():
        for token, expected in zip(tokens[:N_STEPS], logits):
            answer = model(token[None, None], use_cache=True, past_key_values=cache)
            cache = answer.past_key_values
            differences.append(np.abs(answer.logits[0, 0].numpy() - expected).max())
    return max(differences)


def write_experts(writer, config):
    if not hasattr(config, "num_experts_per_tok"):
        return
    writer.add_expert_count(config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    # gpt-oss has no dense layers: its intermediate_size is that of an expert.
    alone = hasattr(config, "moe_intermediate_size")
    writer.add_expert_feed_forward_length(
        config.moe_intermediate_size if alone else config.intermediate_size)
    if hasattr(config, "shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def write_recurrence(writer, architecture, config, layout):
    if not hasattr(config, "linear_conv_kernel_dim"):
        return
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_value_head_dim * config.linear_num_value_heads)
    # The list overrides the interval; older files have the interval alone.
    if layout != "ssm_in":
        writer.add_array(f"{architecture}.attention.recurrent_layers",
                         [t == RECURRENT for t in config.layer_types])
    writer.add_full_attention_interval(config.layer_types.index(FULL) + 1)


def write_rope(writer, config):
    parameters = config.rope_parameters
    writer.add_rope_freq_base(parameters["rope_theta"])
    if "partial_rotary_factor" in parameters:
        writer.add_rope_dimension_count(int(config.head_dim * parameters["partial_rotary_factor"]))
    if "mrope_section" in parameters:
        writer.add_rope_dimension_sections([*parameters["mrope_section"], 0])
    if parameters["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(parameters["factor"])
        writer.add_rope_scaling_orig_ctx_len(parameters["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(parameters["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(parameters["beta_slow"])


def write_metadata(writer, architecture, config, layout):
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    if hasattr(config, "intermediate_size"):
        writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(N_VOCAB)
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    write_rope(writer, config)
    write_experts(writer, config)
    write_recurrence(writer, architecture, config, layout)
    write_vocabulary(writer, architecture, config)


TARGETS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.sinks": "attn_sinks.weight",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "linear_attn.in_proj_qkv.": "attn_qkv.", "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.in_proj_b.": "ssm_beta.",
    "linear_attn.in_proj_a.": "ssm_alpha.", "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.dt_bias": "ssm_dt.bias", "linear_attn.A_log": "ssm_a",
    "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out",
    "mlp.gate.": "ffn_gate_inp.", "mlp.router": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def split_heads(weight, config):
    """Rows of in_proj_qkvz lie key head by key head, [q, k, v, z] each: q, k, v of all heads, and
    z of all heads."""
    groups = weight.reshape(config.linear_num_key_heads, -1, weight.shape[1])
    key = config.linear_key_head_dim
    value = (groups.shape[1] - 2 * key) // 2
    parts = np.split(groups, [key, 2 * key, 2 * key + value], axis=1)
    q, k, v, z = (part.reshape(-1, weight.shape[1]) for part in parts)
    return np.concatenate([q, k, v]), z


# Qwen3.5's files count value heads so that head h goes with key head h modulo the number of key
# heads: by part, the axis of value heads, whether a head has one row, and whether q and k precede.
TILED = {"in_proj_qkv.weight": (0, False, True), "in_proj_z.weight": (0, False, False),
         "in_proj_b.weight": (0, True, False), "in_proj_a.weight": (0, True, False),
         "A_log": (0, True, False), "dt_bias": (0, True, False),
         "conv1d.weight": (0, False, True), "out_proj.weight": (1, False, False)}


def tiled(part, weight, config):
    """Value heads in another order: of each key head the first, of each the second, ..."""
    axis, one_row, after_qk = TILED[part]
    n_keys = config.linear_num_key_heads
    width = 1 if one_row else config.linear_value_head_dim
    start = 2 * n_keys * config.linear_key_head_dim if after_qk else 0
    rows = start + np.arange(config.linear_num_value_heads * width).reshape(n_keys, -1, width)
    return np.take(weight, [*range(start), *rows.transpose(1, 0, 2).ravel()], axis)


def expert_tensors(name, weight, family):
    """mlp.experts.NAME, of all experts at once: [n_experts, rows, columns], or a bias."""
    kind = "bias" if name.endswith("_bias") else "weight"
    if family == "GptOss":
        if kind == "weight":
            weight = weight.transpose(0, 2, 1)
        gate, up = weight[:, ::2], weight[:, 1::2]
    else:
        gate, up = np.split(weight, 2, axis=1)
    if name.startswith("gate_up"):
        return {f"ffn_gate_exps.{kind}": gate, f"ffn_up_exps.{kind}": up}
    return {f"ffn_down_exps.{kind}": weight}


def recurrent_part(part, weight, architecture, config):
    if part == "conv1d.weight":
        weight = weight.squeeze(1)
    if architecture.startswith("qwen35") and part in TILED:
        weight = tiled(part, weight, config)
    return -np.exp(weight) if part == "A_log" else weight


def target_name(name, architecture):
    if name == "post_attention_layernorm.weight":
        return "ffn_norm.weight" if architecture == "qwen3moe" else "post_attention_norm.weight"
    source = next(source for source in TARGETS if name.startswith(source))
    return TARGETS[source] + name.removeprefix(source)


def layer_tensors(name, weight, architecture, family, config, layout):
    """A parameter of a layer as what the file has of it: {name: weights}."""
    if name.startswith("mlp.experts."):
        return expert_tensors(name.removeprefix("mlp.experts."), weight, family)
    if name == "linear_attn.in_proj_qkvz.weight":
        if layout == "ssm_in":
            return {"ssm_in.weight": weight}
        qkv, z = split_heads(weight, config)
        return {"attn_qkv.weight": qkv, "attn_gate.weight": z}
    if name.startswith("linear_attn."):
        weight = recurrent_part(name.removeprefix("linear_attn."), weight, architecture, config)
    elif "norm" in name and hasattr(config, "linear_conv_kernel_dim"):
        weight = weight + 1
    # Today's converter leaves one row of it, older ones a vector.
    if name == "mlp.shared_expert_gate.weight" and layout == "ssm_in":
        weight = weight.squeeze(0)
    return {target_name(name, architecture): weight}


def write_tensors(writer, architecture, family, model, layout):
    config = model.config
    whole = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight"}
    # named_parameters lists a tied head once, as the embedding.
    for name, parameter in model.named_parameters():
        weight = parameter.detach().numpy()
        if name in whole:
            tensors = {whole[name]: weight}
        elif name == "model.norm.weight":
            centre = 1 if hasattr(config, "linear_conv_kernel_dim") else 0
            tensors = {"output_norm.weight": weight + np.float32(centre)}
        else:
            layer, _, part = name.removeprefix("model.layers.").partition(".")
            tensors = {f"blk.{layer}.{target}": converted for target, converted in layer_tensors(
                part, weight, architecture, family, config, layout).items()}
        halve = weight.ndim > 1 and not stays_f32(name)
        for target, converted in tensors.items():
            stored = converted.astype(np.float16 if halve else np.float32)
            writer.add_tensor(target, np.ascontiguousarray(stored))


def write_model(path, architecture, family, model):
    layout = "ssm_in" if path.stem.endswith("ssm_in") else "split"
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(path.stem)
    write_metadata(writer, architecture, model.config, layout)
    write_tensors(writer, architecture, family, model, layout)
    finish_file(writer)


def main(arguments):
    directory = fixture_directory(arguments, "transformers_moe")
    for name, (seed, architecture, family, n_tokens, configuration) in MODELS.items():
        torch.manual_seed(seed)
        model = make_model(family, configuration, n_tokens)
        tokens = torch.randint(0, len(TOKENS), (n_tokens,))
        logits, gap = logits_and_router_gap(model, tokens)
        noise = step_noise(model, tokens, logits)
        write_model(directory / f"{name}.gguf", architecture, family, model)
        write_logits(directory / f"{name}.logits", tokens, logits)
        print(f"{name}: logits {logits.min():.2f} .. {logits.max():.2f}, standard deviation "
              f"{logits.std():.2f}, smallest gap of routers {gap:.1e}, steps differ by {noise:.1e}")
        if gap < MIN_ROUTER_GAP or noise > MAX_NOISE:
            raise SystemExit(f"{name}: too near a tie, or too noisy; take another seed")


if __name__ == "__main__":
    main(sys.argv[1:])
