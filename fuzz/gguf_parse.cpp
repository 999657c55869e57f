// A GGUF file of arbitrary bytes: refused with a message, or accepted with every promise of
// gguf/parse.h kept, and then good for everything that callers do with it: typed values, look-up by
// name, and writing it again, which the parser must accept again.
#include "gguf/parse.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "gguf/encode.h"
#include "gguf/name_index.h"
#include "gguf/value.h"

namespace {

using godwit::check;
using godwit::gguf::Header;
using godwit::gguf::KeyValue;
using godwit::gguf::Tensor;

// A refusal must say something, an array must be as long as the value says.
void convert(const KeyValue& entry) {
  using namespace godwit::gguf;
  const auto spoken = [](const auto& result) {
    check(result.has_value() || result.error().message.starts_with("gguf: metadata key"),
          "a conversion failed without a message");
  };
  spoken(to_uint(entry));
  spoken(to_double(entry));
  spoken(to_bool(entry));
  spoken(to_string(entry));
  spoken(to_strings(entry));
  spoken(to_ints(entry));
  spoken(to_doubles(entry));
  check(!describe_type(entry.value).empty(), "a value without a type");
  check(!entry.key.empty() && entry.key.size() <= kMaxKeyBytes, "a key the parser should refuse");
}

void check_tensors(std::span<const Tensor> tensors, const Header& header, size_t file_bytes) {
  using namespace godwit::gguf;
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : tensors) {
    check(!tensor.name.empty() && tensor.name.size() <= kMaxTensorNameBytes, "name");
    check(!tensor.dims.empty() && tensor.dims.size() <= kMaxDims, "number of dims");
    check(tensor.rows() >= 1 && tensor.cols() >= 1, "a dim of 0");
    check(tensor.bytes == tensor.rows() * godwit::row_bytes(tensor.type, tensor.cols()), "size");
    check(tensor.file_offset % header.alignment == 0, "alignment");
    check(tensor.file_offset >= header.data_offset, "a tensor in the header");
    check(tensor.bytes <= file_bytes && tensor.file_offset <= file_bytes - tensor.bytes, "extent");
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &Tensor::file_offset);
  for (size_t i = 1; i < order.size(); ++i) {
    check(order[i - 1]->file_offset + order[i - 1]->bytes <= order[i]->file_offset, "overlap");
  }
}

template <class Entries, class Name>
void look_up(const Entries& entries, Name name) {
  const auto name_of = [&](size_t i) { return std::string_view(entries[i].*name); };
  const godwit::gguf::NameIndex index(entries.size(), name_of);
  check(!index.find_duplicate(name_of).has_value(), "a duplicate name");
  for (size_t i = 0; i < entries.size(); ++i) {
    check(index.find(name_of(i), name_of) == i, "an entry that cannot be found");
  }
}

void write_again(const Header& header) {
  using namespace godwit::gguf;
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : header.tensors)
    specs.push_back({tensor.name, tensor.type, tensor.dims});
  const auto encoded = encode_header(header.metadata, specs);
  check(encoded.has_value(), "an accepted header that cannot be written");
  uint64_t file_bytes = encoded->bytes.size();
  for (const uint64_t bytes : encoded->tensor_bytes) file_bytes += bytes + header.alignment;
  const auto again =
      parse_header({.bytes = encoded->bytes, .file_bytes = file_bytes, .name = "again"});
  check(again.has_value(), "a written header that cannot be read");
  check(again->metadata.size() == header.metadata.size(), "metadata lost");
  for (size_t i = 0; i < specs.size(); ++i) {
    check(again->tensors[i].name == header.tensors[i].name &&
              again->tensors[i].bytes == header.tensors[i].bytes,
          "a tensor changed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto header =
      godwit::gguf::parse_header({.bytes = bytes, .file_bytes = size, .name = "model.gguf"});
  if (!header) {
    const std::string& message = header.error().message;
    check(message.starts_with("gguf: ") && message.find('\n') == std::string::npos &&
              message.find("model.gguf") != std::string::npos && message.size() < 1000,
          "a message that does not help");
    return 0;
  }
  for (const KeyValue& entry : header->metadata) convert(entry);
  look_up(header->metadata, &KeyValue::key);
  look_up(header->tensors, &Tensor::name);
  check_tensors(header->tensors, *header, size);
  write_again(*header);
  return 0;
}
