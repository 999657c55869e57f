// Checksums of files as a repository states them, computed by OpenSSL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace godwit::hub {

enum class DigestKind {
  kSha256,   // of the content: files stored by LFS
  kGitBlob,  // SHA-1 of "blob <bytes>\0" and the content: files stored in Git itself
};

// By the number of hex digits.
[[nodiscard]] DigestKind digest_kind(std::string_view checksum);

// Reads the whole file. `keep_going` is given the bytes read so far, and stops the work by false.
[[nodiscard]] Result<std::string> digest_file(const std::filesystem::path& path, DigestKind kind,
                                              const std::function<bool(uint64_t done)>& keep_going);

}  // namespace godwit::hub
