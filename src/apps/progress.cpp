#include "apps/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace godwit::apps {
namespace {

constexpr size_t kBarColumns = 30;
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kQuietStart = std::chrono::milliseconds(500);

// fmt::print would throw where stderr is closed.
void print(const std::string& text) { std::fputs(text.c_str(), stderr); }

// "  1:05 left", or nothing where it is not worth saying.
std::string time_left(double seconds) {
  if (!(seconds >= 2 && seconds < 360'000)) return "";
  const auto whole = static_cast<uint64_t>(seconds);
  if (whole < 3600) return fmt::format("  {}:{:02} left", whole / 60, whole % 60);
  return fmt::format("  {}:{:02}:{:02} left", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string label, uint64_t total, Unit unit)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      shown_(start_) {}

Progress::Progress(std::string label, uint64_t total_bytes)
    : Progress(std::move(label), total_bytes, Unit::kBytes) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', stderr);
}

std::string Progress::speed(uint64_t done, double seconds) const {
  const double here = static_cast<double>(done - std::min(done, first_));
  const double per_second = here / std::max(seconds, 1e-9);
  switch (unit_) {
    case Unit::kBytes: {
      const double left = static_cast<double>(total_ - std::min(done, total_)) / per_second;
      return fmt::format("{:.0f} MiB/s{}", per_second / 0x1p20, time_left(left));
    }
    case Unit::kTokens:
      return fmt::format("{:.0f} tokens/s", per_second);
  }
  return "";
}

void Progress::update(uint64_t done) {
  if (total_ == 0) return;
  const Clock::time_point now = Clock::now();
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const bool last = done >= total_;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (terminal_) {
    if (now - start_ < kQuietStart || (now - shown_ < kRedraw && !last)) return;
    shown_ = now;
    const auto filled = static_cast<size_t>(part * kBarColumns);
    print(fmt::format("\r{} [{}{}] {:3.0f} %  {}\x1b[K", label_, std::string(filled, '#'),
                      std::string(kBarColumns - filled, ' '), 100 * part, speed(done, seconds)));
    line_open_ = !last;
    if (last) std::fputc('\n', stderr);
    return;
  }
  const auto tenths = static_cast<uint64_t>(part * 10);
  if (tenths <= tenths_shown_ || now - start_ < kQuietStart) return;
  tenths_shown_ = tenths;
  print(fmt::format("{} {} %  {}\n", label_, 10 * tenths, speed(done, seconds)));
}

}  // namespace godwit::apps
