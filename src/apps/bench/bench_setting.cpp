#include "apps/bench/bench_setting.h"

#include <fmt/chrono.h>

#include <ctime>
#include <map>

#include "apps/model_options.h"
#include "engine/expert_tensors.h"
#include "os/cpu_features.h"

namespace godwit::apps {
namespace {

std::string model_type(const engine::Engine& engine) {
  std::map<TensorType, uint64_t> weights;
  uint64_t all = 0;
  for (const gguf::Tensor& tensor : engine.file().tensors()) {
    weights[tensor.type] += tensor.rows() * tensor.cols();
    all += tensor.rows() * tensor.cols();
  }
  TensorType most = TensorType::kF32;
  for (const auto& [type, n] : weights) {
    if (n > weights[most]) most = type;
  }
  return fmt::format("{} {:.0f}M {}", engine.program().architecture,
                     static_cast<double>(all) * 1e-6, tensor_type_name(most));
}

uint64_t n_params(const engine::Engine& engine) {
  uint64_t n = 0;
  for (const gguf::Tensor& tensor : engine.file().tensors()) n += tensor.rows() * tensor.cols();
  return n;
}

}  // namespace

BenchSetting bench_setting(const engine::Engine& engine) {
  const engine::EngineSettings& s = engine.settings();
  return {.model_path = s.model.string(),
          .model_type = model_type(engine),
          .model_bytes = engine.file().total_bytes(),
          .n_params = n_params(engine),
          .backend = s.backend,
          .processor =
              s.backend == "cuda" ? engine.backend().describe() : std::string(processor_name()),
          .isa = std::string(isa_name(chosen_isa().value_or(Isa::kGeneric))),
          .commit = std::string(build_commit()),
          .n_threads = s.n_threads,
          .chunk_tokens = s.chunk_tokens,
          .k_type = kv_type_name(s.k_type),
          .v_type = kv_type_name(s.v_type),
          .bandwidth_gbps = engine::read_bandwidth_gbps(engine.backend(), s.n_threads),
          .expert_cache = engine::expert_file_bytes(engine.experts()) == 0
                              ? ""
                              : expert_cache_name(*s.expert_cache),
          .route_trace = s.route_trace.string(),
          .activation_bits = s.activation_bits == backend::ActivationBits::kEight ? 8u : 16u};
}

std::string_view build_commit() { return GODWIT_COMMIT; }

std::string bench_time() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace godwit::apps
