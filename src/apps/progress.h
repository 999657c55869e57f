// Progress of a long job on stderr: a bar that redraws itself where stderr is a terminal, a plain
// line at each tenth where it is not; with speed and, of bytes, the time left. Draws at most ten
// times a second; silent when the job is over before anybody would have looked.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace godwit::apps {

class Progress {
 public:
  enum class Unit { kBytes, kTokens };

  // A total of 0 draws nothing.
  Progress(std::string label, uint64_t total, Unit unit);
  Progress(std::string label, uint64_t total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // ends the line of an unfinished bar

  // For a job that goes on where another stopped: speed and time left count from here.
  void start_at(uint64_t done) { first_ = done; }
  // `done` never goes back.
  void update(uint64_t done);

 private:
  [[nodiscard]] std::string speed(uint64_t done, double seconds) const;

  using Clock = std::chrono::steady_clock;

  std::string label_;
  uint64_t total_;
  uint64_t first_ = 0;
  Unit unit_;
  bool terminal_;
  bool line_open_ = false;
  uint64_t tenths_shown_ = 0;
  Clock::time_point start_;
  Clock::time_point shown_;
};

}  // namespace godwit::apps
