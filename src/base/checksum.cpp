#include "base/checksum.h"

#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace godwit {

static_assert(std::endian::native == std::endian::little);

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Checksum::Checksum(Checksum&& other) noexcept = default;
Checksum& Checksum::operator=(Checksum&& other) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

void Checksum::update_text(std::string_view text) {
  update_number(text.size());
  update(std::as_bytes(std::span(text)));
}

void Checksum::update_number(uint64_t number) { update(std::as_bytes(std::span(&number, 1))); }

Digest Checksum::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.low64, hash.high64};
}

Digest digest_of(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.update(bytes);
  return sum.digest();
}

}  // namespace godwit
