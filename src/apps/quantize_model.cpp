#include "apps/quantize_model.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "gguf/value.h"
#include "gguf/writer.h"
#include "os/thread_pool.h"
#include "quant/encode_table.h"
#include "quant/formats.h"

namespace godwit::apps {
namespace {

// Weights in hand at a time: 4 MiB of them as f32, in rows or parts of rows.
constexpr size_t kChunkWeights = 1u << 20;
constexpr size_t kMaxPatternBytes = 256;  // std::regex recurses
constexpr uint32_t kQuantizationVersion = 2;

bool is_float(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

std::string encodable_names() {
  std::string names;
  for (const quant::Encoder& encoder : quant::encoders()) {
    names += names.empty() ? "" : ", ";
    names += tensor_type_name(encoder.type);
  }
  return names;
}

Result<size_t> count(const gguf::File& file, std::string_view key, size_t absent) {
  const auto value = file.get_uint(key);
  if (!value) return fail(value.error());
  return value->has_value() ? static_cast<size_t>(**value) : absent;
}

Result<MixFacts> facts_of(const gguf::File& file) {
  MixFacts facts;
  const auto architecture = file.need_string("general.architecture");
  if (!architecture) return fail(architecture.error());
  facts.architecture = *architecture;
  const auto key = [&](std::string_view name) {
    return fmt::format("{}.{}", facts.architecture, name);
  };
  const auto n_layers = count(file, key("block_count"), 0);
  if (!n_layers) return fail(n_layers.error());
  const auto n_experts = count(file, key("expert_count"), 0);
  if (!n_experts) return fail(n_experts.error());
  facts.n_layers = *n_layers;
  facts.n_experts = *n_experts;
  // Some architectures give a list, one number per layer: the rules then see equal heads.
  facts.n_heads = count(file, key("attention.head_count"), 1).value_or(1);
  facts.n_kv_heads = count(file, key("attention.head_count_kv"), facts.n_heads).value_or(1);
  return facts;
}

// N of "blk.N.", before all other names where there is none.
int64_t layer_of(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  int64_t layer = -1;
  std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

const TensorTypeRule* matching_rule(const QuantizeOptions& options, const std::string& name) {
  for (const TensorTypeRule& rule : options.rules) {
    if (std::regex_search(name, rule.pattern)) return &rule;
  }
  return nullptr;
}

// The type a tensor is to have, before it is asked whether its rows fit.
TensorType wanted_type(const gguf::Tensor& tensor, const QuantizeOptions& options,
                       MixRules& rules) {
  if (!is_quantised_tensor(tensor.name, tensor.dims)) return tensor.type;
  const bool is_output = tensor.name == "output.weight";
  if (is_output && options.output == OutputTensor::kLeave) return tensor.type;
  if (is_output && options.output_type) return *options.output_type;
  if (tensor.name == "token_embd.weight" && options.embedding_type) return *options.embedding_type;
  if (const TensorTypeRule* rule = matching_rule(options, tensor.name)) return rule->type;
  if (options.mode == MixMode::kPure || is_float(options.file_type.type)) {
    return options.file_type.type;
  }
  return rules.next(tensor.name, tensor.cols());
}

Status check_source(const gguf::Tensor& tensor, TensorType type, Requantise requantise) {
  if (type == tensor.type) return {};  // copied
  if (quant::find_format(tensor.type) == nullptr) {
    return fail("tensor {} has type {}, which Godwit cannot decode", gguf::in_quotes(tensor.name),
                tensor_type_name(tensor.type));
  }
  if (requantise == Requantise::kRefuse && !is_float(tensor.type)) {
    return fail(
        "tensor {} is {} already: quantising it again loses more than quantising the original; "
        "--allow-requantize does it all the same",
        gguf::in_quotes(tensor.name), tensor_type_name(tensor.type));
  }
  return {};
}

Result<PlannedTensor> plan_tensor(const gguf::Tensor& tensor, const QuantizeOptions& options,
                                  MixRules& rules) {
  PlannedTensor planned{
      .source = &tensor, .type = wanted_type(tensor, options, rules), .unfitting = {}};
  if (planned.type != tensor.type) {
    const TensorType fitting = fitting_type(planned.type, tensor.cols());
    if (fitting != planned.type) planned.unfitting = std::exchange(planned.type, fitting);
  }
  if (auto usable = check_source(tensor, planned.type, options.requantise); !usable) {
    return fail(std::move(usable).error());
  }
  return planned;
}

// The model's metadata with the new file type, and without what says that it was split.
std::vector<gguf::KeyValue> new_metadata(const gguf::File& file, uint32_t file_type) {
  std::vector<gguf::KeyValue> metadata;
  for (const gguf::KeyValue& entry : file.metadata()) {
    if (entry.key.starts_with("split.")) continue;
    if (entry.key == "general.file_type" || entry.key == "general.quantization_version") continue;
    metadata.push_back(entry);
  }
  metadata.push_back(gguf::make_uint("general.quantization_version", kQuantizationVersion));
  metadata.push_back(gguf::make_uint("general.file_type", file_type));
  return metadata;
}

// Squared differences between `weights` and what `bytes` decode to.
double squared_error(TensorType type, std::span<const float> weights,
                     std::span<const std::byte> bytes, std::span<float> decoded) {
  quant::decode_row(type, bytes, decoded);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double away = static_cast<double>(decoded[i]) - static_cast<double>(weights[i]);
    sum += away * away;
  }
  return sum;
}

// One tensor from its type to another, a chunk at a time.
class Converter {
 public:
  Converter(const QuantizeRun& run, gguf::Writer& writer)
      : run_(run), writer_(writer), pool_(run.n_threads) {}

  Status copy(const gguf::Tensor& tensor) {
    // In parts: a full disk or Ctrl-C is noticed on the way.
    constexpr size_t kPart = 16u << 20;
    for (size_t at = 0; at < tensor.data.size(); at += kPart) {
      if (auto go_on = interruption(); !go_on) return go_on;
      const auto part = tensor.data.subspan(at, std::min(kPart, tensor.data.size() - at));
      if (auto written = writer_.append(part); !written) return written;
    }
    return {};
  }

  // The relative error where it is measured.
  Result<std::optional<double>> convert(const PlannedTensor& tensor) {
    squares_ = 0;
    errors_ = 0;
    // Whole blocks of either type: block sizes are powers of two.
    const uint64_t total = tensor.weights();
    for (uint64_t at = 0; at < total; at += kChunkWeights) {
      if (auto go_on = interruption(); !go_on) return fail(std::move(go_on).error());
      const auto n = static_cast<size_t>(std::min<uint64_t>(kChunkWeights, total - at));
      auto converted = convert_chunk(tensor, at, n);
      if (!converted) return fail(std::move(converted).error());
    }
    if (run_.measure == Measure::kNothing) return std::nullopt;
    return squares_ > 0 ? std::sqrt(errors_ / squares_) : 0.0;
  }

 private:
  Status interruption() const {
    if (run_.interrupted != nullptr && run_.interrupted()) return fail("interrupted");
    return {};
  }

  Status convert_chunk(const PlannedTensor& tensor, uint64_t at, size_t n) {
    weights_.resize(n);
    const TensorType from = tensor.source->type;
    decode(from, tensor.source->data.subspan(row_bytes(from, at), row_bytes(from, n)));
    bytes_.resize(row_bytes(tensor.type, n));
    const quant::Encoder* encoder = quant::find_encoder(tensor.type);
    const size_t bad = quant::first_unfit(*encoder, weights_);
    if (bad < n) {
      return fail("tensor {}, weight {}: {}", gguf::in_quotes(tensor.source->name), at + bad,
                  quant::unfit_reason(*encoder, weights_[bad]));
    }
    quant::encode_weights(*encoder, weights_, pool_, bytes_);
    if (run_.measure == Measure::kError) measure(tensor.type);
    return writer_.append(bytes_);
  }

  // Calls body(first weight, weights) on parts of the chunk, on all threads.
  template <class Body>
  void for_parts(Body&& body) {
    constexpr size_t kPart = 1u << 15;
    std::atomic<size_t> next{0};
    pool_.run([&](size_t) {
      for (size_t at = next.fetch_add(kPart); at < weights_.size(); at = next.fetch_add(kPart)) {
        body(at, std::min(kPart, weights_.size() - at));
      }
    });
  }

  void decode(TensorType type, std::span<const std::byte> bytes) {
    for_parts([&](size_t at, size_t n) {
      quant::decode_row(type, bytes.subspan(row_bytes(type, at), row_bytes(type, n)),
                        std::span(weights_).subspan(at, n));
    });
  }

  void measure(TensorType type) {
    decoded_.resize(weights_.size());
    std::vector<double> errors(weights_.size() / 32768 + 1);
    for_parts([&](size_t at, size_t n) {
      errors[at / 32768] =
          squared_error(type, std::span(weights_).subspan(at, n),
                        std::span(bytes_).subspan(row_bytes(type, at), row_bytes(type, n)),
                        std::span(decoded_).subspan(at, n));
    });
    errors_ += std::accumulate(errors.begin(), errors.end(), 0.0);
    for (const float weight : weights_) {
      squares_ += static_cast<double>(weight) * static_cast<double>(weight);
    }
  }

  const QuantizeRun& run_;
  gguf::Writer& writer_;
  ThreadPool pool_;
  std::vector<float> weights_;
  std::vector<float> decoded_;
  std::vector<std::byte> bytes_;
  double squares_ = 0;  // of the tensor's weights
  double errors_ = 0;
};

}  // namespace

Result<TensorType> parse_encodable_type(std::string_view flag, std::string_view name) {
  const TensorGeometry* geometry = find_tensor_geometry(name);
  if (geometry == nullptr || quant::find_encoder(geometry->type) == nullptr) {
    return fail("{}: expected one of {}, found '{}'", flag, encodable_names(), name);
  }
  return geometry->type;
}

Result<TensorTypeRule> parse_tensor_type_rule(std::string_view text) {
  constexpr std::string_view kFlag = "--tensor-type";
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail("{}: expected REGEX=TYPE, found '{}'", kFlag, text);
  }
  if (equals > kMaxPatternBytes) {
    return fail("{}: expected an expression of at most {} bytes, found {}", kFlag, kMaxPatternBytes,
                equals);
  }
  auto type = parse_encodable_type(kFlag, text.substr(equals + 1));
  if (!type) return fail(std::move(type).error());
  TensorTypeRule rule{.text = std::string(text), .pattern = {}, .type = *type};
  try {
    rule.pattern = std::regex(rule.text.substr(0, equals));
  } catch (const std::regex_error&) {
    return fail("{}: '{}' is not a regular expression", kFlag, text.substr(0, equals));
  }
  return rule;
}

uint64_t QuantizePlan::bytes_before() const {
  return std::accumulate(
      tensors.begin(), tensors.end(), uint64_t{0},
      [](uint64_t sum, const PlannedTensor& tensor) { return sum + tensor.source->bytes; });
}

uint64_t QuantizePlan::bytes_after() const {
  return std::accumulate(
      tensors.begin(), tensors.end(), uint64_t{0},
      [](uint64_t sum, const PlannedTensor& tensor) { return sum + tensor.bytes(); });
}

double QuantizePlan::bits_per_weight() const {
  uint64_t weights = 0;
  for (const PlannedTensor& tensor : tensors) weights += tensor.weights();
  if (weights == 0) return 0;
  return 8 * static_cast<double>(bytes_after()) / static_cast<double>(weights);
}

Result<QuantizePlan> plan_quantize(const gguf::File& file, const QuantizeOptions& options) {
  auto facts = facts_of(file);
  if (!facts) return fail(std::move(facts).error());
  std::vector<std::string_view> names;
  for (const gguf::Tensor& tensor : file.tensors()) names.push_back(tensor.name);
  MixRules rules(options.file_type, *std::move(facts), names);
  // The rules count layers; a file may have them in any order.
  std::vector<size_t> order(file.tensors().size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int64_t layer_a = layer_of(names[a]);
    const int64_t layer_b = layer_of(names[b]);
    return layer_a != layer_b ? layer_a < layer_b : names[a] < names[b];
  });
  QuantizePlan plan{.tensors = std::vector<PlannedTensor>(order.size()),
                    .file_type = static_cast<uint32_t>(options.file_type.mix)};
  for (const size_t i : order) {
    auto planned = plan_tensor(file.tensors()[i], options, rules);
    if (!planned) return fail(std::move(planned).error());
    plan.tensors[i] = *planned;
  }
  return plan;
}

Status write_quantized(const gguf::File& file, const QuantizePlan& plan, const QuantizeRun& run,
                       const std::filesystem::path& path) {
  std::vector<gguf::TensorSpec> specs;
  for (const PlannedTensor& tensor : plan.tensors) {
    specs.push_back({tensor.source->name, tensor.type, tensor.source->dims});
  }
  const auto metadata = new_metadata(file, plan.file_type);
  auto writer = gguf::Writer::create(path, metadata, specs);
  if (!writer) return fail(std::move(writer).error());
  Converter converter(run, *writer);
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    std::optional<double> error;
    if (tensor.type == tensor.source->type) {
      if (auto copied = converter.copy(*tensor.source); !copied) return copied;
    } else {
      auto converted = converter.convert(tensor);
      if (!converted) return fail(std::move(converted).error());
      error = *converted;
    }
    if (run.wrote) run.wrote(i, error);
  }
  return writer->finish();
}

}  // namespace godwit::apps
