// A record of which experts a router chose, token by token and layer by layer: what the cache's
// benchmark replays (experts_bench.cpp), and `bench --route-trace FILE` (route_replay.h). Made up
// by tools/make_route_trace.py; no command records one yet. Text, so that anything can read and
// make it:
//
//   godwit-route-trace 1 layers=48 experts=512
//   # comments and empty lines
//   0 3 17 4 500          token 0, layer 3: experts 17, 4 and 500
//
// Tokens never go back. Files come from outside: everything is checked, and the first thing that is
// wrong is named with its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace godwit::experts {

inline constexpr uint32_t kMaxTraceLayers = 1u << 16;
inline constexpr uint32_t kMaxTraceExperts = 1u << 16;

struct TraceShape {
  uint32_t n_layers = 0;
  uint32_t n_experts = 0;  // per layer

  friend bool operator==(const TraceShape&, const TraceShape&) = default;
};

class RouteTrace {
 public:
  struct Event {
    uint64_t token = 0;
    uint32_t layer = 0;
    uint32_t n_experts = 0;
    size_t first = 0;  // in ids
  };

  // `name` is for messages. Errors name the line.
  [[nodiscard]] static Result<RouteTrace> parse(std::string_view text, std::string_view name);
  [[nodiscard]] static Result<RouteTrace> open(const std::filesystem::path& path);

  [[nodiscard]] TraceShape shape() const { return shape_; }
  [[nodiscard]] std::span<const Event> events() const { return events_; }
  [[nodiscard]] std::span<const uint32_t> experts(const Event& event) const {
    return std::span(ids_).subspan(event.first, event.n_experts);
  }
  [[nodiscard]] uint32_t max_in_use() const { return max_in_use_; }  // of one event
  [[nodiscard]] uint64_t n_tokens() const { return n_tokens_; }      // different ones

 private:
  friend class TraceParser;
  TraceShape shape_;
  std::vector<Event> events_;
  std::vector<uint32_t> ids_;
  uint32_t max_in_use_ = 0;
  uint64_t n_tokens_ = 0;
};

class RouteTraceWriter {
 public:
  [[nodiscard]] static Result<RouteTraceWriter> create(const std::filesystem::path& path,
                                                       TraceShape shape);
  void append(uint64_t token, uint32_t layer, std::span<const uint32_t> experts);
  // Errors: the file could not be written.
  [[nodiscard]] Status finish();

 private:
  RouteTraceWriter(std::filesystem::path path, std::ofstream out)
      : path_(std::move(path)), out_(std::move(out)) {}
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace godwit::experts
