// What one rendering may cost before it stops with an error. The defaults leave two orders of
// magnitude above what long conversations need.
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
