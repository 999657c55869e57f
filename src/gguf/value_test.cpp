#include "gguf/value.h"

#include <gtest/gtest.h>

#include <limits>

#include "gguf/name_index.h"
#include "gguf/writer.h"

namespace godwit::gguf {
namespace {

KeyValue scalar(ValueType type, decltype(Value::content) content) {
  return {.key = "k", .value = {.type = type, .content = std::move(content)}};
}

template <class T>
KeyValue array(ValueType element, std::vector<T> values) {
  return scalar(ValueType::kArray, Array{.element = element, .values = std::move(values)});
}

TEST(GgufValue, AnyIntegerThatIsNotNegativeStandsForAnUnsignedOne) {
  EXPECT_EQ(to_uint(scalar(ValueType::kU8, uint64_t{200})).value(), 200u);
  EXPECT_EQ(to_uint(scalar(ValueType::kI32, int64_t{7})).value(), 7u);
  EXPECT_EQ(to_uint(scalar(ValueType::kU64, ~uint64_t{0})).value(), ~uint64_t{0});
}

TEST(GgufValue, NamesKeyAndTypesInAMismatch) {
  const auto negative = to_uint(scalar(ValueType::kI16, int64_t{-5}));
  EXPECT_EQ(negative.error().message,
            "gguf: metadata key 'k' is -5 (i16), expected an integer that is not negative");
  const auto text = to_uint(make_string("k", "7"));
  EXPECT_EQ(text.error().message,
            "gguf: metadata key 'k' is string, expected an integer that is not negative");
  EXPECT_FALSE(to_uint(make_float("k", 7.0f)).has_value());
  EXPECT_FALSE(to_uint(make_bool("k", true)).has_value());
  const auto list = to_double(make_ints("k", {1}));
  EXPECT_EQ(list.error().message, "gguf: metadata key 'k' is array of i32, expected a number");
}

TEST(GgufValue, AnyNumberStandsForADouble) {
  EXPECT_EQ(to_double(make_float("k", 0.5f)).value(), 0.5);
  EXPECT_EQ(to_double(make_uint("k", 3)).value(), 3.0);
  EXPECT_EQ(to_double(scalar(ValueType::kI8, int64_t{-3})).value(), -3.0);
  EXPECT_FALSE(to_double(make_string("k", "0.5")).has_value());
}

TEST(GgufValue, BoolsAndStringsStandForThemselvesOnly) {
  EXPECT_TRUE(to_bool(make_bool("k", true)).value());
  EXPECT_FALSE(to_bool(make_uint("k", 1)).has_value());
  EXPECT_EQ(to_string(make_string("k", "text")).value(), "text");
  EXPECT_FALSE(to_string(make_uint("k", 1)).has_value());
}

TEST(GgufValue, ArraysConvertWithoutLoss) {
  using Ints = std::vector<int64_t>;
  using Doubles = std::vector<double>;
  const auto uints = array<uint64_t>(ValueType::kU32, {1, 2});
  EXPECT_EQ(to_ints(uints).value(), (Ints{1, 2}));
  EXPECT_EQ(to_doubles(uints).value(), (Doubles{1, 2}));
  EXPECT_EQ(to_ints(make_ints("k", {-1})).value(), (Ints{-1}));
  EXPECT_EQ(to_doubles(make_ints("k", {-1})).value(), (Doubles{-1}));
  EXPECT_EQ(to_ints(array<bool>(ValueType::kBool, {true, false})).value(), (Ints{1, 0}));
  EXPECT_EQ(to_doubles(make_floats("k", {0.5})).value(), (Doubles{0.5}));
  EXPECT_EQ(*to_strings(make_strings("k", {"a"})).value(), (std::vector<std::string>{"a"}));
}

TEST(GgufValue, ArraysThatDoNotFitAreErrors) {
  EXPECT_FALSE(to_ints(make_floats("k", {1.0})).has_value());
  EXPECT_FALSE(to_ints(make_uint("k", 1)).has_value());
  EXPECT_FALSE(to_doubles(make_strings("k", {"1"})).has_value());
  EXPECT_FALSE(to_strings(make_string("k", "a")).has_value());
  EXPECT_FALSE(to_strings(make_ints("k", {1})).has_value());
  const auto large = to_ints(array<uint64_t>(ValueType::kU64, {uint64_t{1} << 63}));
  ASSERT_FALSE(large.has_value());
  EXPECT_NE(large.error().message.find("an element over 9223372036854775807"), std::string::npos);
}

TEST(GgufValue, AnEmptyArrayIsEmptyWhateverItsTag) {
  EXPECT_TRUE(to_strings(make_ints("k", {})).value()->empty());
  EXPECT_TRUE(to_ints(make_strings("k", {})).value().empty());
  EXPECT_TRUE(to_doubles(make_strings("k", {})).value().empty());
}

TEST(GgufValue, KnowsTheTypesOfTheFormat) {
  for (uint32_t id = 0; id <= 12; ++id) {
    const auto type = find_value_type(id);
    ASSERT_TRUE(type.has_value());
    EXPECT_NE(value_type_name(*type), "?");
    EXPECT_GE(value_min_bytes(*type), 1u);
  }
  EXPECT_FALSE(find_value_type(13).has_value());
  EXPECT_FALSE(find_value_type(std::numeric_limits<uint32_t>::max()).has_value());
}

TEST(GgufNameIndex, FindsEntriesAndTheLaterOfTwoDuplicates) {
  const std::vector<std::string_view> names{"b", "c", "a", "b"};
  const auto name_of = [&](size_t i) { return names[i]; };
  const NameIndex index(names.size(), name_of);
  EXPECT_EQ(index.find("a", name_of), 2u);
  EXPECT_EQ(index.find("b", name_of), 0u);
  EXPECT_EQ(index.find("c", name_of), 1u);
  EXPECT_FALSE(index.find("d", name_of).has_value());
  EXPECT_FALSE(index.find("", name_of).has_value());
  EXPECT_EQ(index.find_duplicate(name_of), 3u);
  EXPECT_FALSE(NameIndex(3, name_of).find_duplicate(name_of).has_value());
}

}  // namespace
}  // namespace godwit::gguf
