#include "engine/fingerprint.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace godwit::engine {
namespace {

constexpr size_t kSampleBytes = 1024;

void add(Checksum& sum, uint64_t value) { sum.update_number(value); }
void add(Checksum& sum, int64_t value) { sum.update_number(static_cast<uint64_t>(value)); }
void add(Checksum& sum, double value) { sum.update_number(std::bit_cast<uint64_t>(value)); }
void add(Checksum& sum, bool value) { sum.update_number(value ? 1 : 0); }
void add(Checksum& sum, const std::string& value) { sum.update_text(value); }
void add(Checksum& sum, const gguf::Array& array) {
  sum.update_number(static_cast<uint64_t>(array.element));
  std::visit(
      [&](const auto& values) {
        using Element = typename std::decay_t<decltype(values)>::value_type;
        sum.update_number(values.size());
        for (const Element& value : values) add(sum, value);
      },
      array.values);
}

}  // namespace

Digest fingerprint_of(const gguf::File& file, const program::Program& program) {
  Checksum sum;
  sum.update_number(kNumericsVersion);
  for (const gguf::KeyValue& entry : file.metadata()) {
    sum.update_text(entry.key);
    sum.update_number(static_cast<uint64_t>(entry.value.type));
    std::visit([&](const auto& content) { add(sum, content); }, entry.value.content);
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    sum.update_text(tensor.name);
    sum.update_number(static_cast<uint64_t>(tensor.type));
    sum.update_number(tensor.dims.size());
    for (const uint64_t dim : tensor.dims) sum.update_number(dim);
    sum.update(tensor.data.first(std::min(kSampleBytes, tensor.data.size())));
  }
  for (const program::Rope& rope : program.ropes) {
    sum.update_number(rope.n_rot);
    add(sum, rope.magnitude);
    for (const double frequency : rope.frequencies) add(sum, frequency);
  }
  return sum.digest();
}

}  // namespace godwit::engine
