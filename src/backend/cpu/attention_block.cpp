#include "backend/cpu/attention_block.h"

#include <cstdlib>
#include <string_view>

namespace godwit::cpu {

Result<size_t> forced_attention_block() {
  const char* const value = std::getenv("GODWIT_ATTENTION_BLOCK");
  if (value == nullptr || *value == '\0') return size_t{0};
  for (const size_t length : kAttentionBlocks) {
    if (std::to_string(length) == value) return length;
  }
  return fail("GODWIT_ATTENTION_BLOCK is '{}'; expected one of {} positions", value,
              fmt::join(kAttentionBlocks, ", "));
}

}  // namespace godwit::cpu
