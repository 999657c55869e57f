#include "chat/jinja/json_value.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace godwit::chat::jinja {

namespace {

// Receives the parser's events and builds values bottom up, so that depth is bounded before
// anything recurses and an object of many keys stays linear.
class Builder {
 public:
  explicit Builder(Budget& budget) : budget_(budget) {}

  bool null() { return add(None{}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse(fmt::format("integer {} does not fit in 64 bits", value));
    }
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& digits) {
    if (digits.find_first_of(".eE") == std::string::npos) {
      return refuse("an integer does not fit in 64 bits");
    }
    return add(value);
  }
  bool string(std::string& value) {
    budget_.allocate(value.size() + sizeof(MarkedText));
    return add(Text::from_user(value));
  }
  bool binary(std::vector<std::uint8_t>&) { return refuse("binary values are not JSON"); }

  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool key(std::string& value) {
    budget_.allocate(value.size() + sizeof(MarkedText));
    stack_.back().key = std::move(value);
    return true;
  }
  bool end_array() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    return add(make_list(budget_, std::move(level.items)));
  }
  bool end_object() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    return add(make_dict(budget_, std::move(level.entries)));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return refuse(fmt::format("not valid JSON at byte {}", position));
  }

  Value take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  struct Level {
    bool is_object = false;
    std::string key;
    std::vector<Value> items;
    std::vector<std::pair<Value, Value>> entries;
    std::unordered_map<std::string, std::size_t> places;
  };

  bool refuse(std::string message) {
    error_ = error_.empty() ? std::move(message) : error_;
    return false;
  }

  bool open(bool is_object) {
    if (stack_.size() >= kMaxValueDepth - 1) {
      return refuse(fmt::format("nested more than {} levels deep", kMaxValueDepth - 1));
    }
    stack_.emplace_back().is_object = is_object;
    return true;
  }

  // A key that comes again keeps its place and takes the later value, as in Python.
  bool add(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = stack_.back();
    budget_.allocate(sizeof(Value));
    if (!level.is_object) {
      level.items.push_back(std::move(value));
      return true;
    }
    const auto [place, is_new] = level.places.try_emplace(level.key, level.entries.size());
    if (is_new) {
      level.entries.emplace_back(Text::from_user(level.key), std::move(value));
    } else {
      level.entries[place->second].second = std::move(value);
    }
    return true;
  }

  Budget& budget_;
  std::vector<Level> stack_;
  Value root_;
  std::string error_;
};

}  // namespace

Value parse_json(Budget& budget, std::string_view json) {
  Builder builder(budget);
  if (!nlohmann::json::sax_parse(json, &builder)) {
    throw RenderError{builder.error()};
  }
  return builder.take();
}

}  // namespace godwit::chat::jinja
