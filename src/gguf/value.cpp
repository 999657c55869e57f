#include "gguf/value.h"

#include <algorithm>
#include <limits>

namespace godwit::gguf {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

tl::unexpected<Error> wrong_type(const KeyValue& entry, std::string_view expected) {
  return fail("gguf: metadata key {} is {}, expected {}", in_quotes(entry.key),
              describe_type(entry.value), expected);
}

// The values of an array in the alternative T, or nullptr if it holds another.
template <class T>
const std::vector<T>* elements(const KeyValue& entry) {
  const Array* const array = std::get_if<Array>(&entry.value.content);
  return array == nullptr ? nullptr : std::get_if<std::vector<T>>(&array->values);
}

bool is_empty_array(const KeyValue& entry) {
  const Array* const array = std::get_if<Array>(&entry.value.content);
  return array != nullptr && array->size() == 0;
}

}  // namespace

std::optional<ValueType> find_value_type(uint32_t file_id) {
  if (file_id > static_cast<uint32_t>(ValueType::kF64)) return std::nullopt;
  return static_cast<ValueType>(file_id);
}

std::string_view value_type_name(ValueType type) {
  switch (type) {
    case ValueType::kU8:
      return "u8";
    case ValueType::kI8:
      return "i8";
    case ValueType::kU16:
      return "u16";
    case ValueType::kI16:
      return "i16";
    case ValueType::kU32:
      return "u32";
    case ValueType::kI32:
      return "i32";
    case ValueType::kF32:
      return "f32";
    case ValueType::kBool:
      return "bool";
    case ValueType::kString:
      return "string";
    case ValueType::kArray:
      return "array";
    case ValueType::kU64:
      return "u64";
    case ValueType::kI64:
      return "i64";
    case ValueType::kF64:
      return "f64";
  }
  return "?";
}

uint64_t value_min_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
    case ValueType::kString:
      return 8;
    case ValueType::kArray:
      return 12;
  }
  return 1;
}

std::string describe_type(const Value& value) {
  const Array* const array = std::get_if<Array>(&value.content);
  if (array == nullptr) return std::string(value_type_name(value.type));
  return fmt::format("array of {}", value_type_name(array->element));
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kShown = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += text.size() > kShown ? "...'" : "'";
  return out;
}

Result<uint64_t> to_uint(const KeyValue& entry) {
  if (const auto* const u = std::get_if<uint64_t>(&entry.value.content)) return *u;
  if (const auto* const i = std::get_if<int64_t>(&entry.value.content)) {
    if (*i >= 0) return static_cast<uint64_t>(*i);
    return fail("gguf: metadata key {} is {} ({}), expected an integer that is not negative",
                in_quotes(entry.key), *i, describe_type(entry.value));
  }
  return wrong_type(entry, "an integer that is not negative");
}

Result<double> to_double(const KeyValue& entry) {
  if (const auto* const d = std::get_if<double>(&entry.value.content)) return *d;
  if (const auto* const u = std::get_if<uint64_t>(&entry.value.content)) {
    return static_cast<double>(*u);
  }
  if (const auto* const i = std::get_if<int64_t>(&entry.value.content)) {
    return static_cast<double>(*i);
  }
  return wrong_type(entry, "a number");
}

Result<bool> to_bool(const KeyValue& entry) {
  if (const auto* const b = std::get_if<bool>(&entry.value.content)) return *b;
  return wrong_type(entry, "bool");
}

Result<std::string_view> to_string(const KeyValue& entry) {
  if (const auto* const s = std::get_if<std::string>(&entry.value.content)) {
    return std::string_view(*s);
  }
  return wrong_type(entry, "string");
}

Result<const std::vector<std::string>*> to_strings(const KeyValue& entry) {
  static const std::vector<std::string> none;
  if (const auto* const strings = elements<std::string>(entry)) return strings;
  if (is_empty_array(entry)) return &none;
  return wrong_type(entry, "array of string");
}

Result<std::vector<int64_t>> to_ints(const KeyValue& entry) {
  if (const auto* const ints = elements<int64_t>(entry)) return *ints;
  if (const auto* const bools = elements<bool>(entry)) {
    return std::vector<int64_t>(bools->begin(), bools->end());
  }
  if (const auto* const uints = elements<uint64_t>(entry)) {
    if (std::ranges::any_of(*uints, [](uint64_t u) { return u > uint64_t{kMaxInt}; })) {
      return fail("gguf: metadata key {} has an element over {}, expected 64-bit signed integers",
                  in_quotes(entry.key), kMaxInt);
    }
    return std::vector<int64_t>(uints->begin(), uints->end());
  }
  if (is_empty_array(entry)) return std::vector<int64_t>();
  return wrong_type(entry, "array of integers");
}

Result<std::vector<double>> to_doubles(const KeyValue& entry) {
  const auto widen = [](const auto& values) {
    std::vector<double> out(values.size());
    std::ranges::transform(values, out.begin(), [](auto v) { return static_cast<double>(v); });
    return out;
  };
  if (const auto* const doubles = elements<double>(entry)) return *doubles;
  if (const auto* const ints = elements<int64_t>(entry)) return widen(*ints);
  if (const auto* const uints = elements<uint64_t>(entry)) return widen(*uints);
  if (is_empty_array(entry)) return std::vector<double>();
  return wrong_type(entry, "array of numbers");
}

}  // namespace godwit::gguf
