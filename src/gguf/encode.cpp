#include "gguf/encode.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/bits.h"
#include "gguf/parse.h"
#include "gguf/value.h"

namespace godwit::gguf {
namespace {

class Encoder {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    const auto* const raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
  }

  void put_string(std::string_view text) {
    put(uint64_t{text.size()});
    const auto* const raw = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), raw, raw + text.size());
  }

  void pad_to(uint64_t multiple) { bytes_.resize(round_up(bytes_.size(), multiple)); }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }
  [[nodiscard]] size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

// Narrows an integer to the type in the file; false if it does not fit.
template <class Stored, class Wide>
bool put_integer(Encoder& out, Wide value) {
  if (!std::in_range<Stored>(value)) return false;
  out.put(static_cast<Stored>(value));
  return true;
}

// One scalar of `type`. False: the C++ content is of another kind, or out of range.
template <class T>
bool put_scalar(Encoder& out, ValueType type, const T& value) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (type == ValueType::kU8) return put_integer<uint8_t>(out, value);
    if (type == ValueType::kU16) return put_integer<uint16_t>(out, value);
    if (type == ValueType::kU32) return put_integer<uint32_t>(out, value);
    return type == ValueType::kU64 && put_integer<uint64_t>(out, value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (type == ValueType::kI8) return put_integer<int8_t>(out, value);
    if (type == ValueType::kI16) return put_integer<int16_t>(out, value);
    if (type == ValueType::kI32) return put_integer<int32_t>(out, value);
    return type == ValueType::kI64 && put_integer<int64_t>(out, value);
  } else if constexpr (std::is_same_v<T, double>) {
    if (type == ValueType::kF32) out.put(static_cast<float>(value));
    if (type == ValueType::kF64) out.put(value);
    return type == ValueType::kF32 || type == ValueType::kF64;
  } else if constexpr (std::is_same_v<T, bool>) {
    out.put(static_cast<uint8_t>(value ? 1 : 0));
    return type == ValueType::kBool;
  } else {
    out.put_string(value);
    return type == ValueType::kString;
  }
}

bool put_array(Encoder& out, const Array& array) {
  out.put(static_cast<uint32_t>(array.element));
  out.put(uint64_t{array.size()});
  return std::visit(
      [&](const auto& values) {
        using Element = typename std::remove_cvref_t<decltype(values)>::value_type;
        return std::ranges::all_of(values, [&](const Element& element) {
          return put_scalar<Element>(out, array.element, element);
        });
      },
      array.values);
}

bool put_value(Encoder& out, const Value& value) {
  out.put(static_cast<uint32_t>(value.type));
  return std::visit(
      [&](const auto& content) {
        using T = std::remove_cvref_t<decltype(content)>;
        if constexpr (std::is_same_v<T, Array>) {
          return value.type == ValueType::kArray && put_array(out, content);
        } else {
          return put_scalar<T>(out, value.type, content);
        }
      },
      value.content);
}

// The alignment the file will declare. A wrong one is left for the parser to refuse.
uint64_t alignment_of(std::span<const KeyValue> metadata) {
  const auto entry = std::ranges::find(metadata, "general.alignment", &KeyValue::key);
  if (entry == metadata.end()) return kDefaultAlignment;
  const auto* const number = std::get_if<uint64_t>(&entry->value.content);
  const bool usable = number != nullptr && is_power_of_two(*number) && *number <= kMaxAlignment;
  return usable ? *number : kDefaultAlignment;
}

}  // namespace

Result<EncodedHeader> encode_header(std::span<const KeyValue> metadata,
                                    std::span<const TensorSpec> tensors) {
  EncodedHeader header{.bytes = {}, .alignment = alignment_of(metadata), .tensor_bytes = {}};
  Encoder out;
  for (const char c : {'G', 'G', 'U', 'F'}) out.put(c);
  out.put(uint32_t{3});
  out.put(uint64_t{tensors.size()});
  out.put(uint64_t{metadata.size()});
  for (const KeyValue& entry : metadata) {
    out.put_string(entry.key);
    if (!put_value(out, entry.value)) {
      return fail("gguf: metadata key {} has content that does not fit its type {}",
                  in_quotes(entry.key), describe_type(entry.value));
    }
  }
  uint64_t offset = 0;  // in the data section
  for (const TensorSpec& tensor : tensors) {
    const auto bytes = tensor_bytes(tensor.type, tensor.dims);
    if (!bytes) return fail("gguf: tensor {} {}", in_quotes(tensor.name), bytes.error().message);
    out.put_string(tensor.name);
    out.put(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) out.put(dim);
    out.put(static_cast<uint32_t>(tensor.type));
    out.put(offset);
    header.tensor_bytes.push_back(*bytes);
    const auto end = checked_add(offset, round_up(*bytes, header.alignment));
    if (!end || *end > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return fail("gguf: the tensors up to {} are larger than any file", in_quotes(tensor.name));
    }
    offset = *end;
  }
  out.pad_to(header.alignment);
  header.bytes = out.take();
  // One set of rules: a header that the reader would refuse is never written.
  const auto parsed = parse_header({.bytes = header.bytes,
                                    .file_bytes = header.bytes.size() + offset,
                                    .name = "the header to be written"});
  if (!parsed) return fail(parsed.error());
  return header;
}

}  // namespace godwit::gguf
