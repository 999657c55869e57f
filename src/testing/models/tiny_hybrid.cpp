#include "testing/models/tiny_hybrid.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gguf/writer.h"

namespace godwit::testing {
namespace {

constexpr uint64_t kDim = 64;
constexpr uint64_t kLayers = 4;
constexpr uint64_t kHeadDim = 16;
constexpr uint64_t kHeads = 4;
constexpr uint64_t kKvHeads = 2;
constexpr uint64_t kDeltaHeads = 4;
constexpr uint64_t kKeyHeads = 2;
constexpr uint64_t kTaps = 4;
constexpr uint64_t kExperts = 8;
constexpr uint64_t kFfn = 32;
constexpr uint64_t kChannels = (2 * kKeyHeads + kDeltaHeads) * kHeadDim;

// What a layer adds to the residual stream, beside what comes in.
constexpr float kLayerGain = 0.15f;
// What the head makes of a hidden state, beside the token's embedding.
constexpr float kHiddenGain = 0.1f;

// A tensor, and how its values are drawn.
struct Content {
  enum class Kind : uint8_t { kMatrix, kNorm, kDecay, kJoin };
  gguf::TensorSpec spec;
  Kind kind = Kind::kMatrix;
  float gain = 1.0f;  // of a matrix, over 1 / sqrt(cols)
};

class Tensors {
 public:
  void matrix(std::string name, std::vector<uint64_t> dims, float gain = 1.0f) {
    add(std::move(name), std::move(dims), Content::Kind::kMatrix, gain);
  }
  void norm(std::string name, uint64_t n) { add(std::move(name), {n}, Content::Kind::kNorm, 1); }
  void add(std::string name, std::vector<uint64_t> dims, Content::Kind kind, float gain) {
    all.push_back({{std::move(name), TensorType::kF32, std::move(dims)}, kind, gain});
  }

  void attention(const std::string& p) {
    norm(p + "attn_norm.weight", kDim);
    matrix(p + "attn_q.weight", {kDim, 2 * kHeads * kHeadDim});
    matrix(p + "attn_k.weight", {kDim, kKvHeads * kHeadDim});
    matrix(p + "attn_v.weight", {kDim, kKvHeads * kHeadDim});
    norm(p + "attn_q_norm.weight", kHeadDim);
    norm(p + "attn_k_norm.weight", kHeadDim);
    matrix(p + "attn_output.weight", {kHeads * kHeadDim, kDim}, kLayerGain);
  }
  void delta_net(const std::string& p) {
    norm(p + "attn_norm.weight", kDim);
    matrix(p + "attn_qkv.weight", {kDim, kChannels});
    matrix(p + "attn_gate.weight", {kDim, kDeltaHeads * kHeadDim});
    matrix(p + "ssm_ba.weight", {kDim, 2 * kDeltaHeads});
    matrix(p + "ssm_conv1d.weight", {kTaps, kChannels}, 2.0f);
    matrix(p + "ssm_dt.bias", {kDeltaHeads});
    add(p + "ssm_a", {kDeltaHeads}, Content::Kind::kDecay, 1);
    norm(p + "ssm_norm.weight", kHeadDim);
    matrix(p + "ssm_out.weight", {kDeltaHeads * kHeadDim, kDim}, kLayerGain);
  }
  void experts(const std::string& p) {
    norm(p + "post_attention_norm.weight", kDim);
    matrix(p + "ffn_gate_inp.weight", {kDim, kExperts}, 2.0f);
    matrix(p + "ffn_gate_exps.weight", {kDim, kFfn, kExperts});
    matrix(p + "ffn_up_exps.weight", {kDim, kFfn, kExperts});
    matrix(p + "ffn_down_exps.weight", {kFfn, kDim, kExperts}, kLayerGain);
    matrix(p + "ffn_gate_inp_shexp.weight", {kDim});
    matrix(p + "ffn_gate_shexp.weight", {kDim, kFfn});
    matrix(p + "ffn_up_shexp.weight", {kDim, kFfn});
    matrix(p + "ffn_down_shexp.weight", {kFfn, kDim}, kLayerGain);
  }
  void head(const std::string& p) {
    add(p + "nextn.eh_proj.weight", {2 * kDim, kDim}, Content::Kind::kJoin, 1);
    norm(p + "nextn.enorm.weight", kDim);
    norm(p + "nextn.hnorm.weight", kDim);
    norm(p + "nextn.shared_head_norm.weight", kDim);
    attention(p);
    experts(p);
  }

  std::vector<Content> all;
};

std::vector<Content> contents(const TinyHybrid& model) {
  Tensors tensors;
  tensors.matrix("token_embd.weight", {kDim, kTinyVocab}, 8.0f);
  tensors.norm("output_norm.weight", kDim);
  tensors.matrix("output.weight", {kDim, kTinyVocab}, 3.0f);
  for (uint64_t i = 0; i < kLayers; ++i) {
    const std::string prefix = fmt::format("blk.{}.", i);
    if (i + 1 == kLayers) {
      tensors.attention(prefix);
    } else {
      tensors.delta_net(prefix);
    }
    tensors.experts(prefix);
  }
  if (model.head == TinyHead::kPredictsFurther) tensors.head(fmt::format("blk.{}.", kLayers));
  return std::move(tensors.all);
}

std::vector<float> values_of(const Content& content, uint64_t seed) {
  RandomStream random(seed);
  const std::vector<uint64_t>& dims = content.spec.dims;
  uint64_t n = 1;
  for (const uint64_t dim : dims) n *= dim;
  std::vector<float> values(n);
  const auto bell = [&] { return static_cast<float>(random.bell()); };
  const float spread = content.gain / std::sqrt(static_cast<float>(dims[0]));
  for (uint64_t i = 0; i < n; ++i) {
    switch (content.kind) {
      case Content::Kind::kMatrix:
        values[i] = spread * bell();
        break;
      case Content::Kind::kNorm:
        values[i] = 1.0f + 0.1f * bell();
        break;
      case Content::Kind::kDecay:
        values[i] = -static_cast<float>(std::exp(random.unit()));
        break;
      case Content::Kind::kJoin:
        // The embedding as it is, and a little of everything.
        values[i] = (i % dims[0] == i / dims[0] ? 1.0f : 0.0f) + kHiddenGain * spread * bell();
        break;
    }
  }
  return values;
}

std::vector<gguf::KeyValue> metadata(const TinyHybrid& model) {
  const bool head = model.head == TinyHead::kPredictsFurther;
  const auto number = [](const char* key, uint64_t value) {
    return gguf::make_uint(fmt::format("qwen3next.{}", key), static_cast<uint32_t>(value));
  };
  std::vector<gguf::KeyValue> all = {
      gguf::make_string("general.architecture", "qwen3next"),
      number("block_count", kLayers + (head ? 1 : 0)),
      number("context_length", model.n_positions),
      number("embedding_length", kDim),
      number("attention.head_count", kHeads),
      number("attention.head_count_kv", kKvHeads),
      number("attention.key_length", kHeadDim),
      number("attention.value_length", kHeadDim),
      number("rope.dimension_count", kHeadDim / 2),
      gguf::make_float("qwen3next.attention.layer_norm_rms_epsilon", 1e-6f),
      number("expert_count", kExperts),
      number("expert_used_count", 2),
      number("expert_feed_forward_length", kFfn),
      number("expert_shared_feed_forward_length", kFfn),
      number("ssm.conv_kernel", kTaps),
      number("ssm.state_size", kHeadDim),
      number("ssm.group_count", kKeyHeads),
      number("ssm.time_step_rank", kDeltaHeads),
      number("ssm.inner_size", kDeltaHeads * kHeadDim),
      number("full_attention_interval", kLayers)};
  if (head) all.push_back(number("nextn_predict_layers", 1));
  for (gguf::KeyValue& entry : tiny_vocabulary()) all.push_back(std::move(entry));
  return all;
}

}  // namespace

Status write_tiny_hybrid(const std::filesystem::path& path, const TinyHybrid& model) {
  const std::vector<Content> all = contents(model);
  std::vector<gguf::TensorSpec> specs;
  for (const Content& content : all) specs.push_back(content.spec);
  Result<gguf::Writer> writer = gguf::Writer::create(path, metadata(model), specs);
  if (!writer) return fail(std::move(writer).error());
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<float> values = values_of(all[i], random_bits(model.seed, i));
    if (Status s = writer->append(std::as_bytes(std::span(values))); !s) return s;
  }
  return writer->finish();
}

}  // namespace godwit::testing
