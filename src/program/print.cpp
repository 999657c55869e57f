#include "program/print.h"

#include <fmt/format.h>

#include <iterator>

#include "program/access.h"

namespace godwit::program {
namespace {

std::string names(const Program& program, const std::vector<Access::Use>& uses) {
  std::string text;
  for (const Access::Use& use : uses) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}[{}]", program.buffers[use.buffer.value].name, use.width);
  }
  return text;
}

}  // namespace

std::string print(const Program& program, const TrafficInput& input) {
  std::string text;
  auto out = std::back_inserter(text);
  for_each_step(program, [&](const Step& step) {
    const Access access = access_of(step.operation);
    fmt::format_to(out, "{:<20} {:<12} {} -> {}", step.label, kind_name(step.operation),
                   names(program, access.reads), names(program, access.writes));
    for (const WeightRef& weight : access.weights) {
      fmt::format_to(out, "  {} [{}, {}] {}", program.weights[weight.id].name, weight.rows,
                     weight.cols, tensor_type_name(weight.type));
    }
    fmt::format_to(out, "  {} B\n", traffic_of(step.operation, input).total());
  });
  return text;
}

}  // namespace godwit::program
