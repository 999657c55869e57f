// An exclusive lock on a file, for one process at a time (flock): held while the object lives, and
// let go of by the kernel if the process ends in whatever way. The file stays. Called by what
// writes to folders that several programs share (pull).
#pragma once

#include <filesystem>
#include <functional>

#include "base/result.h"

namespace godwit::os {

class FileLock {
 public:
  // Creates the file where needed. If another process holds the lock, calls `on_wait` once and then
  // waits; as long as `stopped` (may be empty) says no.
  [[nodiscard]] static Result<FileLock> acquire(const std::filesystem::path& path,
                                                const std::function<void()>& on_wait,
                                                const std::function<bool()>& stopped);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

}  // namespace godwit::os
