#include "os/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace godwit::os {
namespace {

std::string errno_text() { return std::generic_category().message(errno); }

// A rename is on the disk only once its folder is. A file system that cannot do it is no error:
// the file itself is safe.
void sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  static_cast<void>(::fsync(file));
  ::close(file);
}

}  // namespace

Result<NewFile> NewFile::create(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".tmp-{}", ::getpid());
  // What a crashed process of the same number left is nobody's.
  const int file = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return fail("cannot create {}: {}", temporary.string(), errno_text());
  return NewFile(file, path, std::move(temporary));
}

NewFile::NewFile(NewFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      size_(other.size_) {}

NewFile::~NewFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

Status NewFile::append(std::span<const std::byte> bytes) {
  if (Status s = write_at(size_, bytes); !s) return s;
  size_ += bytes.size();
  return {};
}

Status NewFile::overwrite(uint64_t offset, std::span<const std::byte> bytes) {
  check(offset <= size_ && bytes.size() <= size_ - offset, "overwrite beyond what was written");
  return write_at(offset, bytes);
}

Status NewFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("cannot write {}: {}", temporary_.string(), errno_text());
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status NewFile::commit() {
  if (::fsync(file_) != 0) return fail("cannot write {}: {}", temporary_.string(), errno_text());
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail("cannot rename {} to {}: {}", temporary_.string(), path_.string(), errno_text());
  }
  ::close(std::exchange(file_, -1));
  sync_folder(path_);
  return {};
}

}  // namespace godwit::os
