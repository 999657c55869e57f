#include "apps/synth_tensors.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "apps/synth_arch.h"

namespace godwit::apps {
namespace {

void add_attention(const ModelShape& shape, const std::string& prefix, SynthTensors& out) {
  const SynthArch& arch = *find_synth_arch(shape.arch);
  const uint64_t q_rows = uint64_t{shape.n_heads} * shape.head_dim;
  const uint64_t kv_rows = uint64_t{shape.n_kv_heads} * shape.head_dim;
  if (arch.fused) {
    out.add(prefix + "attn_qkv.weight", SynthContent::kMatrix, {shape.dim, q_rows + 2 * kv_rows});
  } else {
    // Gated attention has a gate behind each head's query.
    out.add(prefix + "attn_q.weight", SynthContent::kMatrix,
            {shape.dim, arch.hybrid ? 2 * q_rows : q_rows});
    out.add(prefix + "attn_k.weight", SynthContent::kMatrix, {shape.dim, kv_rows});
    out.add(prefix + "attn_v.weight", SynthContent::kMatrix, {shape.dim, kv_rows});
  }
  if (arch.qkv_biases) {
    out.add(prefix + "attn_q.bias", SynthContent::kBias, {q_rows});
    out.add(prefix + "attn_k.bias", SynthContent::kBias, {kv_rows});
    out.add(prefix + "attn_v.bias", SynthContent::kBias, {kv_rows});
  }
  if (arch.head_norm != SynthHeadNorm::kNone) {
    const bool each = arch.head_norm == SynthHeadNorm::kEachHead;
    out.add(prefix + "attn_q_norm.weight", SynthContent::kNorm, {each ? shape.head_dim : q_rows});
    out.add(prefix + "attn_k_norm.weight", SynthContent::kNorm, {each ? shape.head_dim : kv_rows});
  }
  out.add(prefix + "attn_output.weight", SynthContent::kMatrix, {q_rows, shape.dim});
  if (arch.sinks) {
    out.add(prefix + "attn_output.bias", SynthContent::kBias, {shape.dim});
    out.add(prefix + "attn_sinks.weight", SynthContent::kBias, {shape.n_heads});
  }
}

void add_recurrence(const ModelShape& shape, const std::string& prefix, SynthTensors& out) {
  const RecurrenceSizes& sizes = shape.recurrence;
  const uint64_t key = uint64_t{sizes.key_heads} * sizes.head_dim;
  const uint64_t value = uint64_t{sizes.value_heads} * sizes.head_dim;
  const uint64_t mixed = 2 * key + value;  // q, k, v
  out.add(prefix + "attn_qkv.weight", SynthContent::kMatrix, {shape.dim, mixed});
  out.add(prefix + "attn_gate.weight", SynthContent::kMatrix, {shape.dim, value});
  if (find_synth_arch(shape.arch)->tiled) {
    out.add(prefix + "ssm_beta.weight", SynthContent::kMatrix, {shape.dim, sizes.value_heads});
    out.add(prefix + "ssm_alpha.weight", SynthContent::kMatrix, {shape.dim, sizes.value_heads});
  } else {
    out.add(prefix + "ssm_ba.weight", SynthContent::kMatrix,
            {shape.dim, uint64_t{2} * sizes.value_heads});
  }
  out.add(prefix + "ssm_conv1d.weight", SynthContent::kFloatMatrix, {sizes.conv_kernel, mixed});
  out.add(prefix + "ssm_dt.bias", SynthContent::kStep, {sizes.value_heads});
  out.add(prefix + "ssm_a", SynthContent::kDecay, {sizes.value_heads});
  out.add(prefix + "ssm_norm.weight", SynthContent::kNorm, {sizes.head_dim});
  out.add(prefix + "ssm_out.weight", SynthContent::kMatrix, {value, shape.dim});
}

void add_shared_expert(const ModelShape& shape, const std::string& prefix, SynthTensors& out) {
  const uint64_t width = shape.experts.shared_ffn;
  out.add(prefix + "ffn_gate_inp_shexp.weight", SynthContent::kFloatMatrix, {shape.dim});
  out.add(prefix + "ffn_gate_shexp.weight", SynthContent::kMatrix, {shape.dim, width});
  out.add(prefix + "ffn_up_shexp.weight", SynthContent::kMatrix, {shape.dim, width});
  out.add(prefix + "ffn_down_shexp.weight", SynthContent::kMatrix, {width, shape.dim});
}

void add_experts(const ModelShape& shape, const std::string& prefix, SynthTensors& out) {
  const auto& [count, used, ffn, shared_ffn] = shape.experts;
  out.add(prefix + "ffn_gate_inp.weight", SynthContent::kFloatMatrix, {shape.dim, count});
  out.add(prefix + "ffn_gate_exps.weight", SynthContent::kMatrix, {shape.dim, ffn, count});
  out.add(prefix + "ffn_up_exps.weight", SynthContent::kMatrix, {shape.dim, ffn, count});
  out.add(prefix + "ffn_down_exps.weight", SynthContent::kMatrix, {ffn, shape.dim, count});
  if (shared_ffn > 0) add_shared_expert(shape, prefix, out);
  if (!find_synth_arch(shape.arch)->sinks) return;
  out.add(prefix + "ffn_gate_inp.bias", SynthContent::kBias, {count});
  out.add(prefix + "ffn_gate_exps.bias", SynthContent::kBias, {ffn, count});
  out.add(prefix + "ffn_up_exps.bias", SynthContent::kBias, {ffn, count});
  out.add(prefix + "ffn_down_exps.bias", SynthContent::kBias, {shape.dim, count});
}

void add_feed_forward(const ModelShape& shape, const std::string& prefix, SynthTensors& out) {
  const SynthArch& arch = *find_synth_arch(shape.arch);
  if (arch.experts) return add_experts(shape, prefix, out);
  if (arch.fused) {
    out.add(prefix + "ffn_up.weight", SynthContent::kMatrix, {shape.dim, uint64_t{2} * shape.ffn});
  } else {
    out.add(prefix + "ffn_gate.weight", SynthContent::kMatrix, {shape.dim, shape.ffn});
    out.add(prefix + "ffn_up.weight", SynthContent::kMatrix, {shape.dim, shape.ffn});
  }
  out.add(prefix + "ffn_down.weight", SynthContent::kMatrix, {shape.ffn, shape.dim});
}

void add_layer(const ModelShape& shape, uint32_t layer, SynthTensors& out) {
  const SynthArch& arch = *find_synth_arch(shape.arch);
  const std::string prefix = fmt::format("blk.{}.", layer);
  const auto norm_if = [&](bool present, std::string_view name) {
    if (present) out.add(prefix + std::string(name), SynthContent::kNorm, {shape.dim});
  };
  norm_if(arch.norms_before, "attn_norm.weight");
  if (arch.hybrid && (layer + 1) % shape.recurrence.interval != 0) {
    add_recurrence(shape, prefix, out);
  } else {
    add_attention(shape, prefix, out);
  }
  norm_if(arch.norms_after || arch.post_norm, "post_attention_norm.weight");
  norm_if(arch.norms_before && !arch.post_norm, "ffn_norm.weight");
  add_feed_forward(shape, prefix, out);
  norm_if(arch.norms_after, "post_ffw_norm.weight");
}

}  // namespace

void SynthTensors::add(std::string name, SynthContent content, std::vector<uint64_t> dims) {
  tensors.push_back({std::move(name), TensorType::kF32, std::move(dims)});
  contents.push_back(content);
}

SynthTensors synth_tensors(const ModelShape& shape) {
  SynthTensors out;
  out.add("token_embd.weight", SynthContent::kMatrix, {shape.dim, shape.vocab});
  if (shape.rope_factors == RopeFactors::kLlama3) {
    out.add("rope_freqs.weight", SynthContent::kRopeFactors, {shape.head_dim / 2});
  }
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) add_layer(shape, layer, out);
  out.add("output_norm.weight", SynthContent::kNorm, {shape.dim});
  if (shape.output == OutputMatrix::kOwn) {
    out.add("output.weight", SynthContent::kMatrix, {shape.dim, shape.vocab});
  }
  return out;
}

}  // namespace godwit::apps
