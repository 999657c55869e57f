// Builds GGUF files byte by byte, right or wrong: nothing is checked, counted or padded unless
// asked for. For tests of the parser and for its fuzz corpus; the writer (gguf/writer.h) is the
// one to use for files that shall be valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace godwit::testing {

class GgufBytes {
 public:
  template <class T>
  GgufBytes& put(T value) {
    const auto* const raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
    return *this;
  }
  GgufBytes& u8(uint8_t value) { return put(value); }
  GgufBytes& u16(uint16_t value) { return put(value); }
  GgufBytes& u32(uint32_t value) { return put(value); }
  GgufBytes& u64(uint64_t value) { return put(value); }

  GgufBytes& text(std::string_view raw) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(raw.data());
    bytes_.insert(bytes_.end(), bytes, bytes + raw.size());
    return *this;
  }
  // With its length before it.
  GgufBytes& string(std::string_view value) { return u64(value.size()).text(value); }
  GgufBytes& zeros(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return *this;
  }
  GgufBytes& pad(size_t multiple) {
    return zeros((multiple - bytes_.size() % multiple) % multiple);
  }

  // Magic, version, counts.
  GgufBytes& head(uint32_t version, uint64_t n_tensors, uint64_t n_entries) {
    return text("GGUF").u32(version).u64(n_tensors).u64(n_entries);
  }
  // Key and value type; the value must follow.
  GgufBytes& entry(std::string_view key, uint32_t value_type) {
    return string(key).u32(value_type);
  }
  GgufBytes& entry_u32(std::string_view key, uint32_t value) { return entry(key, 4).u32(value); }
  GgufBytes& entry_u16(std::string_view key, uint16_t value) { return entry(key, 2).u16(value); }
  // Key, element type and count; the elements must follow.
  GgufBytes& array(std::string_view key, uint32_t element_type, uint64_t n) {
    return entry(key, 9).u32(element_type).u64(n);
  }
  // A directory entry.
  GgufBytes& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                    uint64_t offset) {
    string(name).u32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) u64(dim);
    return u32(type).u64(offset);
  }

  [[nodiscard]] size_t size() const { return bytes_.size(); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace godwit::testing
