#include "os/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace godwit {
namespace {

struct Descriptor {
  int fd = -1;

  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string errno_text(int code) { return std::generic_category().message(code); }

void unmap(std::span<const std::byte> bytes) {
  // The mapping is read-only; munmap only wants its address.
  if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; regular files ignore it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return fail("cannot open {}: {}", path.string(), errno_text(errno));
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) {
    return fail("cannot examine {}: {}", path.string(), errno_text(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    return fail("expected a file, but {} is a directory", path.string());
  }
  if (!S_ISREG(info.st_mode)) {
    return fail("expected a regular file, but {} is a device, pipe or socket", path.string());
  }
  if (info.st_size <= 0) return fail("{} is empty (0 bytes)", path.string());

  const auto size = static_cast<size_t>(info.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) {
    return fail("cannot map {} ({} bytes): {}", path.string(), size, errno_text(errno));
  }
  // The mapping keeps the file alive; the descriptor is not needed any more.
  return MappedFile(std::span(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap(bytes_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(bytes_); }

void MappedFile::discard(std::span<const std::byte> range) const {
  if (range.empty()) return;
  const auto begin = static_cast<size_t>(range.data() - bytes_.data());
  check(range.data() >= bytes_.data() && begin <= bytes_.size() &&
            range.size() <= bytes_.size() - begin,
        "discard: the range lies outside the mapping");
  // Only pages that lie wholly in the range: its neighbours may be in use. The last page of the
  // file has no neighbour after it.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = (begin + page - 1) / page * page;
  const size_t end = begin + range.size();
  const size_t last = end == bytes_.size() ? end : end / page * page;
  if (first >= last) return;
  // Advice: a refusal changes memory use, never a result. The page cache may still hold the data.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

}  // namespace godwit
