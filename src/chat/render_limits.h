// What one rendering may cost before it stops with an error. A conversation of 200 messages of 2000
// bytes with 64 tools takes most models' templates 300,000 steps, one that copies all the text at
// each message 1.2 million; such a template needs more than the limit for 2000 messages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::chat {

struct RenderLimits {
  std::uint64_t max_steps = 30'000'000;
  std::uint64_t max_bytes = std::uint64_t{512} << 20;  // of texts alive and containers made
  std::size_t max_output_bytes = std::size_t{64} << 20;
  std::size_t max_depth = 400;  // nested evaluations: expressions, statements, macro calls
};

}  // namespace godwit::chat
