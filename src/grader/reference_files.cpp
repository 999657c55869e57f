#include "grader/reference_files.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

namespace godwit::grader {
namespace {

using nlohmann::json;

// Values by which the script shows that it makes the same numbers.
constexpr size_t kProbeValues = 16;

json tensor_json(const GradedTensor& tensor) {
  json probe = json::array();
  for (size_t i = 0; i < kProbeValues && i < tensor.cols; ++i) {
    probe.push_back(bf16_value(tensor.rule, 0, i, tensor.cols));
  }
  // Seeds have 64 bits, which JSON's numbers have not.
  return {{"name", tensor.name},
          {"rows", tensor.rows},
          {"cols", tensor.cols},
          {"seed", std::to_string(tensor.rule.seed)},
          {"half_width", tensor.rule.half_width},
          {"offset", tensor.rule.offset},
          {"bf16_bits", probe}};
}

json cache_json(const GradedModel& model) {
  json layers = json::array();
  for (uint64_t i = 0; i < 2 * uint64_t{model.shape.n_layers}; ++i) {
    layers.push_back(std::to_string(random_bits(model.cache.seed, kCacheSeedBase + i)));
  }
  return {{"k_half_width", model.cache.k_half_width},
          {"v_half_width", model.cache.v_half_width},
          {"seeds", layers}};  // of each layer K, then V
}

json seed_json(const PlanSettings& settings, uint64_t seed) {
  const GradedModel model = make_random_model(settings.shape, seed, settings.n_positions);
  json tensors = json::array();
  for (const GradedTensor& tensor : model.tensors) tensors.push_back(tensor_json(tensor));
  json tokens = json::array();
  for (uint64_t i = 0; i < settings.n_steps; ++i) {
    tokens.push_back(graded_token(model, seed, i).value);
  }
  return {{"seed", seed}, {"tokens", tokens}, {"tensors", tensors}, {"cache", cache_json(model)}};
}

// Empty where there is none, or something else.
std::string text_of(const json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string plan_text(const PlanSettings& settings) {
  const GradedShape& s = settings.shape;
  json seeds = json::array();
  for (const uint64_t seed : settings.seeds) seeds.push_back(seed_json(settings, seed));
  const json plan = {{"model", s.name},
                     {"n_layers", s.n_layers},
                     {"dim", s.dim},
                     {"n_heads", s.n_heads},
                     {"n_kv_heads", s.n_kv_heads},
                     {"head_dim", s.head_dim},
                     {"ffn", s.ffn},
                     {"n_vocab", s.n_vocab},
                     {"rope_base", s.rope_base},
                     {"epsilon", static_cast<double>(s.epsilon)},
                     {"adjacent_pairs", s.pairs == program::RopePairs::kAdjacent},
                     {"n_positions", settings.n_positions},
                     {"n_steps", settings.n_steps},
                     {"seeds", seeds}};
  return plan.dump(1);
}

Status write_plan(const PlanSettings& settings, const std::filesystem::path& path) {
  std::ofstream file(path);
  file << plan_text(settings) << '\n';
  file.close();
  if (!file) return fail("{}: cannot be written", path.string());
  return {};
}

Result<ReferenceRun> read_reference_run(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "reference.json";
  std::ifstream file(path);
  if (!file)
    return fail("{}: cannot be read; tools/megakernel_reference.py writes it", path.string());
  const json data = json::parse(file, nullptr, false);
  if (!data.is_object() || !data.contains("seeds") || !data["seeds"].is_array()) {
    return fail("{}: expected an object with the list 'seeds'", path.string());
  }
  ReferenceRun run{.torch = text_of(data, "torch"), .device = text_of(data, "device"), .seeds = {}};
  for (const json& entry : data["seeds"]) {
    // A negative Z would pass for a small one.
    if (!entry.is_object() || !entry.contains("seed") || !entry["seed"].is_number_unsigned() ||
        !entry.contains("z") || !entry["z"].is_number() || entry["z"].get<double>() < 0) {
      return fail("{}: expected 'seed' and 'z', from 0 on, in each entry of 'seeds', found {:.80}",
                  path.string(), entry.dump());
    }
    run.seeds.push_back({.seed = entry["seed"], .z = entry["z"]});
  }
  return run;
}

Result<std::vector<float>> read_reference_logits(const std::filesystem::path& folder, uint64_t seed,
                                                 size_t numbers) {
  const std::filesystem::path path = folder / fmt::format("seed_{}.f32", seed);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return fail("{}: cannot be read", path.string());
  const auto bytes = static_cast<uint64_t>(file.tellg());
  if (bytes != numbers * sizeof(float)) {
    return fail("{}: expected {} bytes, found {}", path.string(), numbers * sizeof(float), bytes);
  }
  std::vector<float> logits(numbers);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(logits.data()), static_cast<std::streamsize>(bytes));
  if (!file) return fail("{}: cannot be read to its end", path.string());
  return logits;
}

}  // namespace godwit::grader
