#include "model/config.h"

#include <cmath>
#include <string_view>

namespace godwit::model {
namespace {

// Bounds far above any model, so that products of a few fields fit 64 bits.
constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxDim = 1u << 20;
constexpr uint64_t kMaxHeads = 1u << 14;
constexpr uint64_t kMaxContext = 1u << 30;

// Reads keys under the architecture's prefix; remembers the first error.
class Reader {
 public:
  Reader(const gguf::File& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + '.') {}

  uint64_t need_uint(std::string_view name, uint64_t low, uint64_t high) {
    const std::string key = prefix_ + std::string(name);
    return bounded(key, take(file_.need_uint(key)), low, high);
  }

  uint64_t get_uint(std::string_view name, uint64_t fallback, uint64_t low, uint64_t high) {
    const std::string key = prefix_ + std::string(name);
    return bounded(key, take(file_.get_uint(key)).value_or(fallback), low, high);
  }

  double get_double(std::string_view name, double fallback) {
    const std::string key = prefix_ + std::string(name);
    const double value = take(file_.get_double(key)).value_or(fallback);
    if (!std::isfinite(value))
      note(Error{fmt::format("'{}' is {}, expected a number", key, value)});
    return value;
  }

  double get_positive(std::string_view name, double fallback) {
    const double value = get_double(name, fallback);
    if (!(value > 0)) {
      note(Error{fmt::format("'{}{}' is {}, expected more than 0", prefix_, name, value)});
    }
    return value;
  }

  std::optional<double> get_optional_positive(std::string_view name) {
    if (file_.find(prefix_ + std::string(name)) == nullptr) return std::nullopt;
    return get_positive(name, 1.0);
  }

  bool has_array(std::string_view name) const {
    const gguf::Value* value = file_.find(prefix_ + std::string(name));
    return value != nullptr && std::holds_alternative<gguf::Array>(value->content);
  }

  // One value per layer, as booleans or integers, or nothing where the key is absent.
  std::vector<bool> get_layers(std::string_view name, uint32_t n_layers) {
    const std::string key = prefix_ + std::string(name);
    if (file_.find(key) == nullptr) return {};
    const std::vector<int64_t> found = take(file_.get_ints(key)).value_or(std::vector<int64_t>{});
    if (found.size() != n_layers) {
      note(Error{fmt::format("'{}' has {} values, expected one per layer ({})", key, found.size(),
                             n_layers)});
      return {};
    }
    std::vector<bool> layers;
    for (const int64_t layer : found) layers.push_back(layer != 0);
    return layers;
  }

  std::string_view get_string(std::string_view name) {
    return take(file_.get_string(prefix_ + std::string(name))).value_or(std::string_view{});
  }

  void note(Error error) {
    if (status_) status_ = tl::unexpected<Error>(std::move(error));
  }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  template <class T>
  T take(Result<T> result) {
    if (result) return *std::move(result);
    note(std::move(result).error());
    return T{};
  }

  uint64_t bounded(std::string_view key, uint64_t value, uint64_t low, uint64_t high) {
    if (value < low || value > high) {
      note(Error{fmt::format("'{}' is {}, expected {} to {}", key, value, low, high)});
    }
    return value;
  }

  const gguf::File& file_;
  std::string prefix_;
  Status status_;
};

RopeConfig read_rope(Reader& reader, uint32_t head_dim, uint64_t context) {
  RopeConfig rope;
  rope.base = reader.get_positive("rope.freq_base", 10000.0);
  rope.n_rot =
      static_cast<uint32_t>(reader.get_uint("rope.dimension_count", head_dim, 0, head_dim));
  if (rope.n_rot % 2 != 0) {
    reader.note(Error{fmt::format("'{}rope.dimension_count' is {}, expected an even number",
                                  reader.prefix(), rope.n_rot)});
  }
  const std::string_view scaling = reader.get_string("rope.scaling.type");
  if (scaling == "linear") {
    rope.scaling = RopeScaling::kLinear;
  } else if (scaling == "yarn") {
    rope.scaling = RopeScaling::kYarn;
  } else if (scaling == "longrope") {
    rope.scaling = RopeScaling::kLongRope;
  } else if (!scaling.empty() && scaling != "none") {
    reader.note(
        Error{fmt::format("'{}rope.scaling.type' is '{}', expected none, linear, yarn or longrope",
                          reader.prefix(), scaling)});
  }
  // Files older than rope.scaling.* carry the linear factor alone.
  const double old_factor = reader.get_double("rope.scale_linear", 1.0);
  if (scaling.empty() && old_factor != 1.0) rope.scaling = RopeScaling::kLinear;
  rope.factor = reader.get_positive("rope.scaling.factor", old_factor);
  rope.original_context =
      reader.get_uint("rope.scaling.original_context_length", context, 1, kMaxContext);
  rope.attention_factor = reader.get_positive("rope.scaling.attn_factor", 1.0);
  rope.yarn_magnitude = reader.get_optional_positive("rope.scaling.yarn_attn_factor");
  rope.yarn_ext_factor = reader.get_double("rope.scaling.yarn_ext_factor", 1.0);
  rope.yarn_log_multiplier = reader.get_double("rope.scaling.yarn_log_multiplier", 0.0);
  rope.yarn_beta_fast = reader.get_positive("rope.scaling.yarn_beta_fast", 32.0);
  rope.yarn_beta_slow = reader.get_positive("rope.scaling.yarn_beta_slow", 1.0);
  return rope;
}

SlidingWindow read_window(Reader& reader, uint32_t n_layers) {
  SlidingWindow window;
  window.length = reader.get_uint("attention.sliding_window", 0, 0, UINT32_MAX);
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  if (reader.has_array(kPattern)) {
    window.layers = reader.get_layers(kPattern, n_layers);
  } else {
    window.period = static_cast<uint32_t>(reader.get_uint(kPattern, 0, 0, kMaxLayers));
  }
  if (const auto base = reader.get_optional_positive("rope.freq_base_swa")) {
    window.rope_base = *base;
  }
  return window;
}

Experts read_experts(Reader& reader) {
  const auto get = [&](std::string_view name, uint64_t high) {
    return static_cast<uint32_t>(reader.get_uint(name, 0, 0, high));
  };
  Experts experts{.n_experts = get("expert_count", kMaxHeads),
                  .n_used = get("expert_used_count", kMaxHeads),
                  .ffn = get("expert_feed_forward_length", kMaxDim),
                  .shared_ffn = get("expert_shared_feed_forward_length", kMaxDim)};
  if (experts.n_used > experts.n_experts || (experts.n_experts != 0 && experts.n_used == 0)) {
    reader.note(Error{fmt::format("'{}expert_used_count' is {}, expected 1 to expert_count ({})",
                                  reader.prefix(), experts.n_used, experts.n_experts)});
  }
  return experts;
}

// `n_blocks`: of the file, with those that predict further tokens; so long is its list.
DeltaNet read_delta_net(Reader& reader, uint32_t n_blocks) {
  const auto get = [&](std::string_view name, uint64_t fallback, uint64_t high) {
    return static_cast<uint32_t>(reader.get_uint(name, fallback, 0, high));
  };
  return {.taps = get("ssm.conv_kernel", 0, 64),
          .head_dim = get("ssm.state_size", 0, 4096),
          .n_heads = get("ssm.time_step_rank", 0, kMaxHeads),
          .n_key_heads = get("ssm.group_count", 0, kMaxHeads),
          .attention_every = get("full_attention_interval", 4, kMaxLayers),
          .recurrent = reader.get_layers("attention.recurrent_layers", n_blocks)};
}

Scales read_scales(Reader& reader) {
  return {.embedding = reader.get_double("embedding_scale", 0.0),
          .residual = reader.get_double("residual_scale", 0.0),
          .attention = reader.get_double("attention.scale", 0.0),
          .logits = reader.get_double("logit_scale", 0.0),
          .temperature = reader.get_double("attention.temperature_scale", 0.0)};
}

}  // namespace

Result<Config> read_config(const gguf::File& file) {
  const Result<std::string_view> architecture = file.need_string("general.architecture");
  if (!architecture) return fail(architecture.error());

  Config config;
  config.architecture = std::string(*architecture);
  Reader reader(file, config.architecture);
  const auto u32 = [](uint64_t value) { return static_cast<uint32_t>(value); };
  config.n_layers = u32(reader.need_uint("block_count", 1, kMaxLayers));
  config.n_extra_layers = u32(reader.get_uint("nextn_predict_layers", 0, 0, kMaxLayers));
  config.dim = u32(reader.need_uint("embedding_length", 1, kMaxDim));
  config.ffn = u32(reader.get_uint("feed_forward_length", 0, 0, kMaxDim));
  config.n_heads = u32(reader.need_uint("attention.head_count", 1, kMaxHeads));
  config.n_kv_heads = u32(reader.get_uint("attention.head_count_kv", config.n_heads, 1, kMaxHeads));
  config.context = reader.need_uint("context_length", 1, kMaxContext);
  config.norm_epsilon =
      static_cast<float>(reader.get_positive("attention.layer_norm_rms_epsilon", 1e-5));
  if (!reader.status()) return fail(reader.status().error());

  if (config.n_extra_layers >= config.n_layers) {
    return fail("'{0}.nextn_predict_layers' is {1}, expected fewer than block_count ({2})",
                config.architecture, config.n_extra_layers, config.n_layers);
  }
  config.n_layers -= config.n_extra_layers;
  if (config.n_heads % config.n_kv_heads != 0) {
    return fail("'{0}.attention.head_count' is {1}, not a multiple of head_count_kv ({2})",
                config.architecture, config.n_heads, config.n_kv_heads);
  }
  config.head_dim =
      u32(reader.get_uint("attention.key_length", config.dim / config.n_heads, 1, kMaxDim));
  const uint64_t value_length =
      reader.get_uint("attention.value_length", config.head_dim, 1, kMaxDim);
  if (reader.status() && value_length != config.head_dim) {
    return fail("'{}.attention.value_length' is {}, expected the key length ({})",
                config.architecture, value_length, config.head_dim);
  }
  config.rope = read_rope(reader, config.head_dim, config.context);
  config.window = read_window(reader, config.n_layers);
  config.scales = read_scales(reader);
  config.experts = read_experts(reader);
  config.delta = read_delta_net(reader, config.n_layers + config.n_extra_layers);
  config.attention_softcap = reader.get_optional_positive("attn_logit_softcapping");
  config.logit_softcap = reader.get_optional_positive("final_logit_softcapping");
  if (!reader.status()) return fail(reader.status().error());
  return config;
}

Status check_feed_forward(const Config& config) {
  if (config.ffn == 0) return fail("'{}.feed_forward_length' is missing", config.architecture);
  return {};
}

}  // namespace godwit::model
