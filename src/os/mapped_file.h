// A file mapped read-only. The mapping is exactly the file's size at open; a file truncated by
// somebody else afterwards still faults, which callers that stream must guard against themselves.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace godwit {

class MappedFile {
 public:
  // Errors: missing, a directory or other special file, no permission, empty.
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // Drops resident pages of a range that has been copied elsewhere; later reads come from disk.
  void discard(std::span<const std::byte> range) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace godwit
