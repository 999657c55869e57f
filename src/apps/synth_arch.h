// What the files of each architecture carry beside, or instead of, what all dense decoders have:
// the part of `synth` that grows with model/registry.h. Names as in general.architecture.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace godwit::apps {

enum class SynthHeadNorm : uint8_t { kNone, kEachHead, kWholeRow };

struct SynthArch {
  std::string_view name;
  bool qkv_biases = false;
  SynthHeadNorm head_norm = SynthHeadNorm::kNone;
  bool norms_before = true;  // attn_norm, ffn_norm
  bool norms_after = false;  // post_attention_norm, post_ffw_norm
  bool fused = false;        // attn_qkv, and ffn_up with the gate's rows first
  bool scales = false;       // Granite's four factors
  bool experts = false;      // a router and experts in place of the feed-forward layer
  bool hybrid = false;       // the gated delta rule in most layers, gated attention in the others
  bool tiled = false;        // its gates in ssm_beta and ssm_alpha, not in ssm_ba; RoPE sections
  bool shared = false;       // a shared expert beside the others
  bool sinks = false;        // attn_sinks, and biases on every projection, router and expert
  bool post_norm = false;    // post_attention_norm in place of ffn_norm
  uint32_t window = 0;       // attention.sliding_window; 0: no such key
};

[[nodiscard]] std::span<const SynthArch> synth_archs();
// nullptr for a name that is not in the list.
[[nodiscard]] const SynthArch* find_synth_arch(std::string_view name);
// "gemma, gemma2, ..."
[[nodiscard]] std::string synth_arch_names();

}  // namespace godwit::apps
