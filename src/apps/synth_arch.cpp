#include "apps/synth_arch.h"

#include <algorithm>
#include <array>

namespace godwit::apps {
namespace {

constexpr std::array kArchs = {
    SynthArch{.name = "gemma"},
    SynthArch{.name = "gemma2", .norms_after = true, .window = 4096},
    SynthArch{.name = "gemma3",
              .head_norm = SynthHeadNorm::kEachHead,
              .norms_after = true,
              .window = 512},
    SynthArch{.name = "gpt-oss",
              .qkv_biases = true,
              .experts = true,
              .sinks = true,
              .post_norm = true,
              .window = 128},
    SynthArch{.name = "granite", .scales = true},
    SynthArch{.name = "llama"},
    SynthArch{.name = "mistral3"},
    SynthArch{.name = "olmo2",
              .head_norm = SynthHeadNorm::kWholeRow,
              .norms_before = false,
              .norms_after = true},
    SynthArch{.name = "phi3", .fused = true},
    SynthArch{.name = "qwen2", .qkv_biases = true},
    SynthArch{.name = "qwen3", .head_norm = SynthHeadNorm::kEachHead},
    SynthArch{.name = "qwen35",
              .head_norm = SynthHeadNorm::kEachHead,
              .hybrid = true,
              .tiled = true,
              .post_norm = true},
    SynthArch{.name = "qwen35moe",
              .head_norm = SynthHeadNorm::kEachHead,
              .experts = true,
              .hybrid = true,
              .tiled = true,
              .shared = true,
              .post_norm = true},
    SynthArch{.name = "qwen3moe", .head_norm = SynthHeadNorm::kEachHead, .experts = true},
    SynthArch{.name = "qwen3next",
              .head_norm = SynthHeadNorm::kEachHead,
              .experts = true,
              .hybrid = true,
              .shared = true,
              .post_norm = true},
    SynthArch{.name = "smollm3"},
};

}  // namespace

std::span<const SynthArch> synth_archs() { return kArchs; }

const SynthArch* find_synth_arch(std::string_view name) {
  const auto found = std::ranges::find(kArchs, name, &SynthArch::name);
  return found == kArchs.end() ? nullptr : &*found;
}

std::string synth_arch_names() {
  std::string names;
  for (const SynthArch& arch : kArchs) {
    names += names.empty() ? "" : ", ";
    names += arch.name;
  }
  return names;
}

}  // namespace godwit::apps
