// What one rendering may cost before it stops with an error. A conversation of 200 messages of 2000
// bytes with 64 tools takes at most 300,000 steps of any template in llama.cpp's models/templates;
// one of 2000 messages takes 14 million where a template looks back over all of them at each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::chat {

struct RenderLimits {
  std::uint64_t max_steps = 20'000'000;
  std::uint64_t max_bytes = std::uint64_t{512} << 20;  // of texts alive and containers made
  std::size_t max_output_bytes = std::size_t{64} << 20;
  std::size_t max_depth = 400;  // nested evaluations: expressions, statements, macro calls
};

}  // namespace godwit::chat
