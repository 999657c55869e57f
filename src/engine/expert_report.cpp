#include "engine/expert_report.h"

#include "engine/engine.h"

namespace godwit::engine {
namespace {

// "blk.3" of "blk.3.ffn_up_exps.weight".
std::string layer_name(std::string_view tensor) {
  const size_t first = tensor.find('.');
  const size_t second = first == std::string_view::npos ? first : tensor.find('.', first + 1);
  return std::string(tensor.substr(0, second));
}

std::string layer_name(const experts::ExpertSource& source, uint32_t layer) {
  for (const experts::Part part : experts::kAllParts) {
    if (const gguf::Tensor* tensor = source.tensor(layer, part)) return layer_name(tensor->name);
  }
  return "";
}

}  // namespace

experts::LayerStatistics ExpertReport::total() const {
  experts::LayerStatistics sum;
  for (const Layer& layer : layers) sum += layer.counts;
  return sum;
}

void ExpertReport::add(const ExpertReport& difference) {
  const IoCounters so_far = io;
  const std::vector<Layer> before = std::move(layers);
  *this = difference;
  for (size_t i = 0; i < layers.size() && i < before.size(); ++i) {
    layers[i].counts += before[i].counts;
  }
  io.read_bytes += so_far.read_bytes;
  io.device_bytes += so_far.device_bytes;
}

ExpertReport ExpertReport::since(const ExpertReport& before) const {
  ExpertReport report = *this;
  for (size_t i = 0; i < report.layers.size() && i < before.layers.size(); ++i) {
    report.layers[i].counts = layers[i].counts.since(before.layers[i].counts);
  }
  report.io = {.read_bytes = io.read_bytes - before.io.read_bytes,
               .device_bytes = io.device_bytes - before.io.device_bytes};
  return report;
}

ExpertReport expert_report(const Engine& engine) {
  const experts::Statistics statistics = engine.backend().expert_statistics();
  ExpertReport report{.layers = {},
                      .slot_bytes = statistics.slot_bytes,
                      .staging_bytes = statistics.staging_bytes,
                      .io = io_counters().value_or(IoCounters{})};
  // The steps of one layer of the model follow one another.
  for (uint32_t i = 0; i < statistics.layers.size(); ++i) {
    const std::string name = layer_name(engine.experts(), i);
    if (name.empty()) continue;
    if (report.layers.empty() || report.layers.back().name != name) {
      report.layers.push_back({.name = name, .counts = {}});
    }
    report.layers.back().counts += statistics.layers[i];
  }
  return report;
}

}  // namespace godwit::engine
