// A file of saved state and the note of a chat in it: whatever the bytes, an error of one line, or
// tokens of the vocabulary and exactly the state that was asked for. The first byte says whether
// the checksums are put right first, so that what lies behind them is reached.
#include "engine/state_file.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "apps/chat_note.h"
#include "checks.h"

namespace {

using namespace godwit;  // NOLINT: one file, the names of one library

constexpr engine::StateOwner kOwner = {
    .model = {0x1111111111111111, 0x2222222222222222},
    .shape = {.k_type = TensorType::kF16,
              .v_type = TensorType::kF16,
              .position_bytes = 8,
              .fixed_bytes = 16},
    .n_context = 64,
    .n_vocab = 100,
};

uint64_t number(const std::vector<std::byte>& bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void put_sum(std::vector<std::byte>& bytes, size_t at, size_t begin, size_t size) {
  const uint64_t sum = digest_of(std::span(bytes).subspan(begin, size))[0];
  std::memcpy(bytes.data() + at, &sum, sizeof sum);
}

// Offsets as in engine/state_file.cpp.
void repair(std::vector<std::byte>& bytes) {
  constexpr size_t kHeader = engine::kStateHeaderBytes;
  if (bytes.size() < kHeader) return;
  const uint64_t n_tokens = number(bytes, 56);
  if (n_tokens > 1024 || number(bytes, 40) > 1024 || number(bytes, 48) > 1024) return;
  const uint64_t sizes[] = {4 * n_tokens, n_tokens * number(bytes, 40), number(bytes, 48),
                            number(bytes, 64)};
  size_t begin = kHeader;
  for (size_t i = 0; i < 4; ++i) {
    if (sizes[i] > bytes.size() - begin) break;
    put_sum(bytes, 72 + 8 * i, begin, sizes[i]);
    begin += sizes[i];
  }
  put_sum(bytes, kHeader - 8, 0, kHeader - 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto all = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(all.begin() + 1, all.end());
  if (data[0] % 2 == 1) repair(bytes);
  const auto file = engine::StateFile::parse(bytes, kOwner);
  if (!good(file)) return 0;
  require(file->tokens.size() <= kOwner.n_context);
  for (const TokenId token : file->tokens) {
    require(token.value >= 0 && static_cast<uint64_t>(token.value) < kOwner.n_vocab);
  }
  require(file->state.positions.size() == file->tokens.size() * kOwner.shape.position_bytes);
  require(file->state.fixed.size() == kOwner.shape.fixed_bytes);
  const auto messages = apps::parse_chat_note(file->note);
  if (!good(messages)) return 0;
  // What was read is written and read again.
  const auto again = apps::parse_chat_note(apps::chat_note(*messages));
  require(again && again->size() == messages->size());
  return 0;
}
