// Reads that tests hold back or make fail, to stand in for pread. Not used by the program.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "experts/slice_reader.h"

namespace godwit::testing {

inline int64_t plain_read(int file, std::span<std::byte> to, uint64_t offset) {
  const ssize_t n = ::pread(file, to.data(), to.size(), static_cast<off_t>(offset));
  return n < 0 ? -errno : n;
}

// Reads wait while it is closed.
class ReadGate {
 public:
  void close() { set(false); }
  void open() { set(true); }
  // Until `n` reads stand before the gate.
  void wait_for(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_waiting_ >= n; });
  }

  [[nodiscard]] experts::ReadFunction reads() {
    return [this](int file, std::span<std::byte> to, uint64_t offset) {
      {
        std::unique_lock lock(mutex_);
        ++n_waiting_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
        --n_waiting_;
      }
      return plain_read(file, to, offset);
    };
  }

 private:
  void set(bool open) {
    const std::scoped_lock lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  size_t n_waiting_ = 0;
};

}  // namespace godwit::testing
