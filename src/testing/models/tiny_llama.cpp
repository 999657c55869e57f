#include "testing/models/tiny_llama.h"

#include <string>
#include <vector>

#include "base/random.h"
#include "gguf/writer.h"
#include "quant/formats.h"

namespace godwit::testing {
namespace {

constexpr uint64_t kDim = 256;
constexpr uint64_t kFfn = 512;

std::vector<gguf::KeyValue> metadata() {
  std::vector<gguf::KeyValue> all = {
      gguf::make_string("general.architecture", "llama"),
      gguf::make_uint("llama.block_count", 1),
      gguf::make_uint("llama.context_length", 512),
      gguf::make_uint("llama.embedding_length", kDim),
      gguf::make_uint("llama.feed_forward_length", kFfn),
      gguf::make_uint("llama.attention.head_count", 4),
      gguf::make_uint("llama.attention.head_count_kv", 2),
      gguf::make_float("llama.attention.layer_norm_rms_epsilon", 1e-5f)};
  for (gguf::KeyValue& entry : tiny_vocabulary()) all.push_back(std::move(entry));
  return all;
}

std::vector<gguf::TensorSpec> tensors(TensorType type) {
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    return gguf::TensorSpec{name, type, {cols, rows}};
  };
  const auto norm = [](const char* name) {
    return gguf::TensorSpec{name, TensorType::kF32, {kDim}};
  };
  return {matrix("token_embd.weight", kTinyVocab, kDim),
          norm("output_norm.weight"),
          norm("blk.0.attn_norm.weight"),
          norm("blk.0.ffn_norm.weight"),
          matrix("blk.0.attn_q.weight", 256, kDim),
          matrix("blk.0.attn_k.weight", 128, kDim),
          matrix("blk.0.attn_v.weight", 128, kDim),
          matrix("blk.0.attn_output.weight", kDim, 256),
          matrix("blk.0.ffn_gate.weight", kFfn, kDim),
          matrix("blk.0.ffn_up.weight", kFfn, kDim),
          matrix("blk.0.ffn_down.weight", kDim, kFfn)};
}

}  // namespace

Status write_tiny_llama(const std::filesystem::path& path, const TinyLlama& model) {
  const std::vector<gguf::TensorSpec> specs = tensors(model.type);
  Result<gguf::Writer> writer = gguf::Writer::create(path, metadata(), specs);
  if (!writer) return fail(std::move(writer).error());
  RandomStream random(model.seed);
  const quant::Format& format = *quant::find_format(model.type);
  const TensorGeometry& geometry = tensor_geometry(model.type);
  for (const gguf::TensorSpec& spec : specs) {
    if (spec.dims.size() == 1) {
      const std::vector<float> ones(kDim, 1.0f);
      if (Status s = writer->append(std::as_bytes(std::span(ones))); !s) return s;
      continue;
    }
    std::vector<std::byte> block(geometry.block_bytes);
    for (uint64_t i = 0; i < spec.dims[0] * spec.dims[1] / geometry.block_weights; ++i) {
      format.random_block(random, 0.06f, block.data());
      if (Status s = writer->append(block); !s) return s;
    }
  }
  return writer->finish();
}

}  // namespace godwit::testing
