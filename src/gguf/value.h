// Metadata values: names and sizes of the types in a file, and what a value may stand for. Pure
// functions over KeyValue, shared by File's typed getters and the fuzz target; they never guess:
// a value that cannot be represented exactly in the asked type is an error naming key and types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace godwit::gguf {

// The type with this id in a file, or nullopt for an id nobody has defined.
[[nodiscard]] std::optional<ValueType> find_value_type(uint32_t file_id);
[[nodiscard]] std::string_view value_type_name(ValueType type);
// Smallest number of bytes one value takes in a file: its size, or 8 (the length) for a string and
// 12 (element type and count) for an array.
[[nodiscard]] uint64_t value_min_bytes(ValueType type);

// "u32", or "array of string".
[[nodiscard]] std::string describe_type(const Value& value);
// Text from a file, fit for one line of a message: quoted, control bytes escaped, shortened.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Any integer that is not negative.
[[nodiscard]] Result<uint64_t> to_uint(const KeyValue& entry);
// Any number; integers beyond 2^53 lose low bits.
[[nodiscard]] Result<double> to_double(const KeyValue& entry);
[[nodiscard]] Result<bool> to_bool(const KeyValue& entry);
[[nodiscard]] Result<std::string_view> to_string(const KeyValue& entry);
// The arrays. An empty one stands for an empty array of any type: writers disagree on its tag.
[[nodiscard]] Result<const std::vector<std::string>*> to_strings(const KeyValue& entry);
// Integers, or booleans as 0 and 1.
[[nodiscard]] Result<std::vector<int64_t>> to_ints(const KeyValue& entry);
[[nodiscard]] Result<std::vector<double>> to_doubles(const KeyValue& entry);

}  // namespace godwit::gguf
