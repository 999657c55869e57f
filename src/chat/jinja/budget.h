// What one rendering may cost. Everything that loops or allocates pays here first, so that a
// template without end, or one that doubles its text, stops early with a clear error instead of
// taking the machine with it. Steps only grow. Bytes of texts are given back when the text dies;
// containers, which are small, are counted in total.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "chat/jinja/error.h"
#include "chat/render_limits.h"

namespace godwit::chat::jinja {

// Shared by parser and evaluator.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
inline constexpr int kMaxParseDepth = 100;
// Containers in containers, whether from JSON or built by the template.
inline constexpr std::size_t kMaxValueDepth = 100;
// jinja2's sandbox draws the same line.
inline constexpr std::int64_t kMaxRange = 100'000;

class Budget {
 public:
  explicit Budget(const RenderLimits& limits) : limits_(limits) {}

  const RenderLimits& limits() const { return limits_; }

  void step(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ > limits_.max_steps) {
      raise("rendering took more than {} steps", limits_.max_steps);
    }
  }

  // Work that grows with a text's length: searches, comparisons, copies.
  void scan(std::uint64_t bytes) { step(1 + bytes / 64); }

  // Call before the memory is taken.
  void allocate(std::uint64_t bytes) {
    if (bytes > limits_.max_bytes || bytes_ > limits_.max_bytes - bytes) {
      raise("rendering needed more than {} bytes of memory", limits_.max_bytes);
    }
    bytes_ += bytes;
    step(bytes / 128);  // filling them takes time too
  }

  void release(std::uint64_t bytes) { bytes_ -= bytes; }

  // One level of nested evaluation for as long as it lives.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) {
      if (budget_.depth_ >= budget_.limits_.max_depth) {
        raise("nested more than {} levels deep", budget_.limits_.max_depth);
      }
      ++budget_.depth_;
    }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Budget& budget_;
  };

 private:
  RenderLimits limits_;
  std::uint64_t steps_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t depth_ = 0;
};

// Bytes taken from a budget, given back when this dies. The budget lives longer.
class Charge {
 public:
  Charge() = default;
  explicit Charge(Budget& budget) : budget_(&budget) {}
  Charge(Charge&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&&) = delete;
  ~Charge() {
    if (bytes_ > 0) {
      budget_->release(bytes_);
    }
  }

  void add(std::uint64_t bytes) {
    budget_->allocate(bytes);
    bytes_ += bytes;
  }

 private:
  Budget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace godwit::chat::jinja
