// Checksums of bytes that come piece by piece: XXH3 of 128 bits (https://xxhash.com). They guard
// against accidents and tell things apart; they are no defence against anyone who means harm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace godwit {

using Digest = std::array<uint64_t, 2>;  // low, high half

class Checksum {
 public:
  Checksum();
  Checksum(Checksum&& other) noexcept;
  Checksum& operator=(Checksum&& other) noexcept;
  ~Checksum();

  void update(std::span<const std::byte> bytes);
  void update_text(
      std::string_view text);           // its length first, so that two texts do not run together
  void update_number(uint64_t number);  // as eight bytes, little-endian
  [[nodiscard]] Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Digest digest_of(std::span<const std::byte> bytes);

}  // namespace godwit
