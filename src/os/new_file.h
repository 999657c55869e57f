// A file that appears whole or not at all: written under a temporary name beside its own, brought
// to the disk, then renamed over whatever was there. What is not committed is removed again; after
// a crash the old file is intact and at most "<path>.tmp-<process>" is left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace godwit::os {

class NewFile {
 public:
  // Errors: the folder is missing or not writable.
  [[nodiscard]] static Result<NewFile> create(const std::filesystem::path& path);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  // Errors of all three: a full disk and its like.
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Replaces bytes that append() has written.
  [[nodiscard]] Status overwrite(uint64_t offset, std::span<const std::byte> bytes);
  // Nothing may be called after it.
  [[nodiscard]] Status commit();

 private:
  NewFile(int file, std::filesystem::path path, std::filesystem::path temporary)
      : file_(file), path_(std::move(path)), temporary_(std::move(temporary)) {}
  [[nodiscard]] Status write_at(uint64_t offset, std::span<const std::byte> bytes);

  int file_;  // -1 when moved from or committed
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  uint64_t size_ = 0;
};

}  // namespace godwit::os
