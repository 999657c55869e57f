#include "model/out_of_scope.h"

#include <algorithm>
#include <array>

namespace godwit::model {
namespace {

struct Kind {
  std::string_view architecture;  // of general.architecture
  std::string_view what;
};

constexpr std::string_view kProjector =
    "a vision or audio projector (mmproj), not a language "
    "model; Godwit runs the text model it belongs to, on text";
constexpr std::string_view kEmbedding = "an embedding model: it makes vectors, not text";
constexpr std::string_view kEncoderDecoder = "an encoder-decoder model; Godwit runs decoders only";
constexpr std::string_view kDiffusion = "a diffusion model: it does not write from left to right";
constexpr std::string_view kAudio = "an audio model: it does not write text";
constexpr std::string_view kRecurrent = "a recurrent model of a kind Godwit does not run";
constexpr std::string_view kExperts = "a mixture of experts of a kind Godwit does not run";

constexpr auto kKinds = std::to_array<Kind>({
    {"bert", kEmbedding},
    {"clip", kProjector},
    {"dbrx", kExperts},
    {"deepseek2", kExperts},
    {"dream", kDiffusion},
    {"eurobert", kEmbedding},
    {"gemma-embedding", kEmbedding},
    {"glm4moe", kExperts},
    {"granitemoe", kExperts},
    {"jina-bert-v2", kEmbedding},
    {"jina-bert-v3", kEmbedding},
    {"llada", kDiffusion},
    {"llada-moe", kDiffusion},
    {"llama-embed", kEmbedding},
    {"mamba", kRecurrent},
    {"mamba2", kRecurrent},
    {"modern-bert", kEmbedding},
    {"neo-bert", kEmbedding},
    {"nomic-bert", kEmbedding},
    {"nomic-bert-moe", kEmbedding},
    {"olmoe", kExperts},
    {"phimoe", kExperts},
    {"qwen2moe", kExperts},
    {"rnd1", kDiffusion},
    {"rwkv6", kRecurrent},
    {"rwkv7", kRecurrent},
    {"t5", kEncoderDecoder},
    {"t5encoder", kEmbedding},
    {"wavtokenizer-dec", kAudio},
});

}  // namespace

Status refuse_out_of_scope(const gguf::File& file, std::string_view architecture) {
  const auto type = file.get_string("general.type");
  if (type && *type == "adapter") {
    return fail(
        "the file is a LoRA adapter, not a model; Godwit does not apply adapters: merge it "
        "into its base model and convert that");
  }
  if (type && *type == "mmproj") return fail("the file is {}", kProjector);
  const auto found = std::ranges::find(kKinds, architecture, &Kind::architecture);
  if (found != kKinds.end()) {
    return fail("the file's architecture '{}' is {}", architecture, found->what);
  }
  // Embedding models made from language models keep the architecture and say how they pool.
  const auto pooling = file.get_uint(std::string(architecture) + ".pooling_type");
  if (pooling && pooling->value_or(0) != 0) return fail("the file is {}", kEmbedding);
  return {};
}

}  // namespace godwit::model
