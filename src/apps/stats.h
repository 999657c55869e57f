// The figures printed after an answer: speed beside the bytes it moved and the floor.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/generate.h"

namespace godwit::apps {

struct ResidentFigures {
  uint64_t peak_bytes = 0;     // so far
  uint64_t planned_bytes = 0;  // once the context is full; 0: not on the host
  uint64_t n_positions = 0;    // of that context
};

// "141.3 MiB resident, 301.0 MiB planned for 8192 positions"
[[nodiscard]] std::string resident_text(const ResidentFigures& figures);

struct DecodeFigures {
  double prompt_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  double bytes_per_token = 0;     // program/traffic.h
  double gbps = 0;                // bytes moved per second of decode, 10^9
  double bandwidth_gbps = 0;      // measured now; 0 if that failed
  ResidentFigures resident = {};  // before that measurement
};

// Measures the bandwidth, which takes a fraction of a second.
[[nodiscard]] DecodeFigures decode_figures(const engine::Engine& engine,
                                           const engine::GenerateResult& result);

// "prompt 31 tokens, 812 tok/s | decode 64 tokens, 241 tok/s | 98.4 MB/token, 23.7 GB/s, 71 % of
// the 33.5 GB/s measured | 141.3 MiB resident, 301.0 MiB planned for 8192 positions"
[[nodiscard]] std::string stats_line(const engine::GenerateResult& result,
                                     const DecodeFigures& figures);

}  // namespace godwit::apps
