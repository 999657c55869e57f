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

}  // namespace

Progress::Progress(std::string label, uint64_t total_bytes)
    : label_(std::move(label)),
      total_bytes_(total_bytes),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      shown_(start_) {}

Progress::~Progress() {
  if (line_open_) fmt::print(stderr, "\n");
}

void Progress::update(uint64_t done_bytes) {
  if (total_bytes_ == 0) return;
  const Clock::time_point now = Clock::now();
  const double part =
      std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes_));
  const bool last = done_bytes >= total_bytes_;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double mib_per_s = static_cast<double>(done_bytes) / 0x1p20 / std::max(seconds, 1e-9);
  if (terminal_) {
    if (now - start_ < kQuietStart || (now - shown_ < kRedraw && !last)) return;
    shown_ = now;
    const auto filled = static_cast<size_t>(part * kBarColumns);
    fmt::print(stderr, "\r{} [{}{}] {:3.0f} %  {:.0f} MiB/s ", label_, std::string(filled, '#'),
               std::string(kBarColumns - filled, ' '), 100 * part, mib_per_s);
    line_open_ = !last;
    if (last) fmt::print(stderr, "\n");
    return;
  }
  const auto tenths = static_cast<uint64_t>(part * 10);
  if (tenths <= tenths_shown_ || now - start_ < kQuietStart) return;
  tenths_shown_ = tenths;
  fmt::print(stderr, "{} {} %  {:.0f} MiB/s\n", label_, 10 * tenths, mib_per_s);
}

}  // namespace godwit::apps
