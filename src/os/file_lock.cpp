#include "os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace godwit::os {

Result<FileLock> FileLock::acquire(const std::filesystem::path& path,
                                   const std::function<void()>& on_wait,
                                   const std::function<bool()>& stopped) {
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (file < 0) return fail("cannot create {}: {}", path.string(), std::strerror(errno));
  FileLock lock(file);
  bool waits = false;
  // Asked for again and again instead of waited for, so that Ctrl-C is answered.
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail("cannot lock {}: {}", path.string(), std::strerror(errno));
    }
    if (stopped && stopped()) return fail("interrupted");
    if (!std::exchange(waits, true)) on_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace godwit::os
