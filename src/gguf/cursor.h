// Reads little-endian values one after another from untrusted bytes. The first failure sticks:
// later reads give zeros and keep the first message, so that a reader may check once per entry.
// Used by parse.cpp alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace godwit::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place: little-endian");

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string_view file_name)
      : bytes_(bytes), file_name_(file_name) {}

  [[nodiscard]] uint64_t position() const { return position_; }
  [[nodiscard]] uint64_t remaining() const { return bytes_.size() - position_; }
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] Error take_error() { return std::move(*error_); }
  // "at byte 0x1a20 of model.gguf"
  [[nodiscard]] std::string where(uint64_t position) const {
    return fmt::format("at byte {:#x} of {}", position, file_name_);
  }

  template <class... Args>
  void fail_at(uint64_t position, fmt::format_string<Args...> format, Args&&... args) {
    if (failed()) return;
    error_ = Error{fmt::format("gguf: {}; {}", fmt::format(format, std::forward<Args>(args)...),
                               where(position))};
  }

  // What the bytes being read are, for the message of a file that ends too early.
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  [[nodiscard]] const std::string& subject() const { return subject_; }

  template <class T>
  [[nodiscard]] T read() {
    T value{};
    if (take(sizeof(T))) std::memcpy(&value, &bytes_[position_ - sizeof(T)], sizeof(T));
    return value;
  }

  // A length and as many bytes, of which at most `max_bytes` are accepted.
  [[nodiscard]] std::string_view read_string(std::string_view what, uint64_t max_bytes) {
    const uint64_t start = position_;
    const auto length = read<uint64_t>();
    if (failed()) return {};
    if (length > max_bytes) {
      fail_at(start, "{}: {} is {} bytes long, expected at most {}", subject_, what, length,
              max_bytes);
      return {};
    }
    if (!take(length)) return {};
    const auto text = bytes_.subspan(position_ - length, length);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

 private:
  [[nodiscard]] bool take(uint64_t n) {
    if (failed()) return false;
    if (n > remaining()) {
      fail_at(position_, "the file ends in {}: {} bytes are needed, {} are left ({} missing)",
              subject_, n, remaining(), n - remaining());
      return false;
    }
    position_ += n;
    return true;
  }

  std::span<const std::byte> bytes_;
  std::string_view file_name_;
  std::string subject_ = "the header";
  uint64_t position_ = 0;
  std::optional<Error> error_;
};

}  // namespace godwit::gguf
