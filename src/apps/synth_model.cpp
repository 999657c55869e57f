#include "apps/synth_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <utility>

#include "apps/synth_arch.h"
#include "apps/synth_tensors.h"
#include "apps/synth_vocab.h"
#include "base/random.h"
#include "quant/formats.h"

namespace godwit::apps {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr float kNormDeviation = 0.05f;
constexpr float kBiasDeviation = 0.02f;

// general.file_type: what most tensors are, as llama.cpp numbers it; it only names the file there.
std::optional<uint32_t> file_type(TensorType type) {
  constexpr std::pair<TensorType, uint32_t> kFileTypes[] = {
      {TensorType::kF32, 0},      {TensorType::kF16, 1},     {TensorType::kQ4_0, 2},
      {TensorType::kQ4_1, 3},     {TensorType::kQ8_0, 7},    {TensorType::kQ5_0, 8},
      {TensorType::kQ5_1, 9},     {TensorType::kQ2_K, 10},   {TensorType::kQ3_K, 11},
      {TensorType::kQ4_K, 14},    {TensorType::kQ5_K, 16},   {TensorType::kQ6_K, 18},
      {TensorType::kIQ2_XXS, 19}, {TensorType::kIQ2_XS, 20}, {TensorType::kIQ3_XXS, 23},
      {TensorType::kIQ1_S, 24},   {TensorType::kIQ4_NL, 25}, {TensorType::kIQ3_S, 26},
      {TensorType::kIQ2_S, 28},   {TensorType::kIQ4_XS, 30}, {TensorType::kIQ1_M, 31},
      {TensorType::kBF16, 32},    {TensorType::kTQ1_0, 36},  {TensorType::kTQ2_0, 37},
      {TensorType::kMXFP4, 38},   {TensorType::kNVFP4, 39},  {TensorType::kQ1_0, 40},
      {TensorType::kQ2_0, 41},
  };
  const auto found = std::ranges::find(kFileTypes, type, &std::pair<TensorType, uint32_t>::first);
  if (found == std::end(kFileTypes)) return std::nullopt;
  return found->second;
}

void append_arch_metadata(const ModelShape& shape, std::vector<gguf::KeyValue>& metadata) {
  const SynthArch& arch = *find_synth_arch(shape.arch);
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", arch.name, name); };
  if (arch.window != 0) {
    metadata.push_back(gguf::make_uint(key("attention.sliding_window"), arch.window));
  }
  if (arch.experts) {
    const ExpertSizes& experts = shape.experts;
    metadata.push_back(gguf::make_uint(key("expert_count"), experts.count));
    metadata.push_back(gguf::make_uint(key("expert_used_count"), experts.used));
    metadata.push_back(gguf::make_uint(key("expert_feed_forward_length"), experts.ffn));
    if (experts.shared_ffn > 0) {
      metadata.push_back(
          gguf::make_uint(key("expert_shared_feed_forward_length"), experts.shared_ffn));
    }
  }
  if (arch.hybrid) {
    const RecurrenceSizes& sizes = shape.recurrence;
    metadata.push_back(gguf::make_uint(key("ssm.conv_kernel"), sizes.conv_kernel));
    metadata.push_back(gguf::make_uint(key("ssm.state_size"), sizes.head_dim));
    metadata.push_back(gguf::make_uint(key("ssm.group_count"), sizes.key_heads));
    metadata.push_back(gguf::make_uint(key("ssm.time_step_rank"), sizes.value_heads));
    metadata.push_back(gguf::make_uint(key("ssm.inner_size"), sizes.value_heads * sizes.head_dim));
    metadata.push_back(gguf::make_uint(key("full_attention_interval"), sizes.interval));
  }
  if (arch.tiled) {  // a quarter of a head's pairs each, the last for no axis
    const int64_t pairs = (shape.rope_dim == 0 ? shape.head_dim : shape.rope_dim) / 2;
    metadata.push_back(gguf::make_ints(key("rope.dimension_sections"),
                                       {pairs - 2 * (pairs / 3), pairs / 3, pairs / 3, 0}));
  }
  if (arch.scales) {  // Granite 3.1 2B's; sizes that random weights stay sane under
    metadata.push_back(gguf::make_float(key("embedding_scale"), 12.0f));
    metadata.push_back(gguf::make_float(key("residual_scale"), 0.22f));
    metadata.push_back(gguf::make_float(key("attention.scale"), 0.015625f));
    metadata.push_back(gguf::make_float(key("logit_scale"), 8.0f));
  }
}

std::vector<gguf::KeyValue> make_metadata(const SynthOptions& options) {
  const ModelShape& shape = options.shape;
  const std::string& arch = shape.arch;
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", arch, name); };
  std::vector<gguf::KeyValue> metadata;
  metadata.push_back(gguf::make_string("general.architecture", arch));
  metadata.push_back(gguf::make_string(
      "general.name", fmt::format("synthetic {} {} seed {}", shape.name,
                                  tensor_type_name(options.matrix_type), options.seed)));
  if (const auto type = file_type(options.matrix_type)) {
    metadata.push_back(gguf::make_uint("general.file_type", *type));
  }
  metadata.push_back(gguf::make_uint("general.quantization_version", 2));
  metadata.push_back(gguf::make_uint(key("block_count"), shape.n_layers));
  metadata.push_back(gguf::make_uint(key("context_length"), shape.context));
  metadata.push_back(gguf::make_uint(key("embedding_length"), shape.dim));
  metadata.push_back(gguf::make_uint(key("feed_forward_length"), shape.ffn));
  metadata.push_back(gguf::make_uint(key("attention.head_count"), shape.n_heads));
  metadata.push_back(gguf::make_uint(key("attention.head_count_kv"), shape.n_kv_heads));
  metadata.push_back(gguf::make_uint(key("attention.key_length"), shape.head_dim));
  metadata.push_back(gguf::make_uint(key("attention.value_length"), shape.head_dim));
  metadata.push_back(gguf::make_float(key("attention.layer_norm_rms_epsilon"), shape.rms_epsilon));
  metadata.push_back(gguf::make_float(key("rope.freq_base"), shape.rope_theta));
  metadata.push_back(gguf::make_uint(key("rope.dimension_count"),
                                     shape.rope_dim == 0 ? shape.head_dim : shape.rope_dim));
  append_arch_metadata(shape, metadata);
  metadata.push_back(gguf::make_uint(key("vocab_size"), shape.vocab));
  append_vocab(shape.vocab, metadata);
  return metadata;
}

Status set_types(const SynthOptions& options, SynthTensors& directory) {
  std::vector<bool> used(options.rules.size(), false);
  for (size_t i = 0; i < directory.tensors.size(); ++i) {
    if (directory.contents[i] != SynthContent::kMatrix) continue;
    gguf::TensorSpec& tensor = directory.tensors[i];
    tensor.type = options.matrix_type;
    if (tensor.name == "token_embd.weight") {
      tensor.type = options.embedding_type.value_or(options.matrix_type);
    }
    for (size_t r = 0; r < options.rules.size(); ++r) {
      if (!matches(options.rules[r], tensor.name)) continue;
      tensor.type = options.rules[r].type;
      used[r] = true;
    }
    const TensorGeometry& geometry = tensor_geometry(tensor.type);
    if (quant::find_format(tensor.type) == nullptr) {
      return fail("tensor '{}': cannot make weights of type {}", tensor.name, geometry.name);
    }
    if (tensor.dims[0] % geometry.block_weights != 0) {
      return fail(
          "tensor '{}' has rows of {} weights: expected a multiple of {} for {}; choose another "
          "type, or one for this tensor by --tensor-type",
          tensor.name, tensor.dims[0], geometry.block_weights, geometry.name);
    }
  }
  for (size_t r = 0; r < used.size(); ++r) {
    if (!used[r]) return fail("--tensor-type: no matrix matches '{}'", options.rules[r].pattern);
  }
  return {};
}

uint64_t spec_bytes(const gguf::TensorSpec& tensor) {
  uint64_t bytes = row_bytes(tensor.type, tensor.dims[0]);
  for (size_t i = 1; i < tensor.dims.size(); ++i) bytes *= tensor.dims[i];
  return bytes;
}

// FNV-1a: a tensor's weights depend on its name and the seed, not on its neighbours.
uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

// Frequency divisors of Llama 3.1: long waves are stretched by the scaling factor, short ones left
// alone, those between interpolated. Source: the `rope_scaling` of its public configuration.
std::vector<float> llama3_rope_factors(const ModelShape& shape) {
  constexpr double kOriginalContext = 8192;
  constexpr double kLowFactor = 1;
  constexpr double kHighFactor = 4;
  const auto stretch = static_cast<double>(shape.rope_scaling_factor);
  std::vector<float> factors;
  for (uint32_t i = 0; i < shape.head_dim; i += 2) {
    const double exponent = static_cast<double>(i) / shape.head_dim;
    const double wave =
        2 * std::numbers::pi * std::pow(static_cast<double>(shape.rope_theta), exponent);
    const double smooth = (kOriginalContext / wave - kLowFactor) / (kHighFactor - kLowFactor);
    const double keep = std::clamp(smooth, 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - keep) / stretch + keep)));
  }
  return factors;
}

// How fast a head forgets, and its step: with these a state fades within 2 to 1000 tokens.
float decay_weight(double unit) { return static_cast<float>(-0.5 * std::pow(16.0, unit)); }
float step_weight(double unit) {
  const double step = 0.002 * std::pow(50.0, unit);
  return static_cast<float>(std::log(std::expm1(step)));  // softplus of it is the step
}

std::vector<float> float_weights(const gguf::TensorSpec& tensor, SynthContent content,
                                 const ModelShape& shape, RandomStream random) {
  if (content == SynthContent::kRopeFactors) return llama3_rope_factors(shape);
  const float deviation = 1.0f / std::sqrt(static_cast<float>(tensor.dims[0]));
  const auto bell = [&](float scale) { return scale * static_cast<float>(random.bell()); };
  std::vector<float> weights(spec_bytes(tensor) / sizeof(float));
  for (float& weight : weights) {
    switch (content) {
      case SynthContent::kNorm:
        weight = 1.0f + bell(kNormDeviation);
        break;
      case SynthContent::kBias:
        weight = bell(kBiasDeviation);
        break;
      case SynthContent::kDecay:
        weight = decay_weight(random.unit());
        break;
      case SynthContent::kStep:
        weight = step_weight(random.unit());
        break;
      case SynthContent::kMatrix:
      case SynthContent::kFloatMatrix:
      case SynthContent::kRopeFactors:
        weight = bell(deviation);
        break;
    }
  }
  return weights;
}

// Appends a matrix of random blocks, a chunk at a time. Deviation 1/sqrt(cols): the product with a
// vector of deviation 1 has deviation 1 again.
Status write_matrix(const gguf::TensorSpec& tensor, RandomStream random, gguf::Writer& writer,
                    const std::function<void(uint64_t)>& wrote) {
  const quant::Format* format = quant::find_format(tensor.type);
  const size_t block = tensor_geometry(tensor.type).block_bytes;
  const float deviation = 1.0f / std::sqrt(static_cast<float>(tensor.dims[0]));
  std::vector<std::byte> chunk(kChunkBytes / block * block);
  for (uint64_t left = spec_bytes(tensor); left > 0;) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(left, chunk.size()));
    for (size_t at = 0; at < n; at += block) {
      format->random_block(random, deviation, chunk.data() + at);
    }
    if (auto appended = writer.append(std::span(chunk).first(n)); !appended) return appended;
    left -= n;
    wrote(n);
  }
  return {};
}

}  // namespace

uint64_t SynthModel::tensor_bytes() const {
  return std::accumulate(
      tensors.begin(), tensors.end(), uint64_t{0},
      [](uint64_t sum, const gguf::TensorSpec& tensor) { return sum + spec_bytes(tensor); });
}

bool matches(const TypeRule& rule, std::string_view tensor_name) {
  const std::string_view pattern = rule.pattern;
  if (pattern.empty()) return false;
  for (size_t at = tensor_name.find(pattern); at != std::string_view::npos;
       at = tensor_name.find(pattern, at + 1)) {
    const size_t end = at + pattern.size();
    const bool starts = at == 0 || tensor_name[at - 1] == '.';
    const bool ends = end == tensor_name.size() || tensor_name[end] == '.';
    if (starts && ends) return true;
  }
  return false;
}

Result<SynthModel> plan_synth_model(const SynthOptions& options) {
  if (auto valid = validate(options.shape); !valid) return fail(std::move(valid).error());
  SynthTensors directory = synth_tensors(options.shape);
  if (auto set = set_types(options, directory); !set) return fail(std::move(set).error());
  return SynthModel{.metadata = make_metadata(options),
                    .tensors = std::move(directory.tensors),
                    .contents = std::move(directory.contents),
                    .shape = options.shape,
                    .seed = options.seed};
}

Status write_synth_model(const SynthModel& model, const std::filesystem::path& path,
                         const std::function<void(uint64_t)>& progress) {
  auto writer = gguf::Writer::create(path, model.metadata, model.tensors);
  if (!writer) return fail(std::move(writer).error());
  uint64_t done = 0;
  const auto wrote = [&](uint64_t bytes) {
    done += bytes;
    if (progress) progress(done);
  };
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const gguf::TensorSpec& tensor = model.tensors[i];
    const RandomStream random(random_bits(model.seed, name_hash(tensor.name)));
    if (model.contents[i] == SynthContent::kMatrix) {
      if (auto status = write_matrix(tensor, random, *writer, wrote); !status) return status;
      continue;
    }
    const std::vector<float> weights =
        float_weights(tensor, model.contents[i], model.shape, random);
    const auto bytes = std::as_bytes(std::span(weights));
    if (auto status = writer->append(bytes); !status) return status;
    wrote(bytes.size());
  }
  return writer->finish();
}

}  // namespace godwit::apps
