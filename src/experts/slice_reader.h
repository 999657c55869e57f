// Reads experts' slices out of the model's files, past the page cache where the file system allows
// (O_DIRECT), so that the cache's budget is all the memory experts take. Safe to call from several
// threads, each with a staging buffer of its own. Called by the store's read threads alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "experts/source.h"

namespace godwit::experts {

// Of staging buffers, and of offset and length of direct reads. 4096 satisfies every disk that is
// common; where a disk wants more, its reads fail with EINVAL and become buffered.
inline constexpr size_t kDirectAlignment = 4096;

enum class ReadMode : uint8_t { kDirect, kBuffered };

// pread(2) with -errno for -1: what tests replace to make reads fail.
using ReadFunction = std::function<int64_t(int file, std::span<std::byte> to, uint64_t offset)>;

class SliceReader {
 public:
  // Keeps a reference to `source`. An empty `read` is pread itself. Errors: a file cannot be
  // opened.
  [[nodiscard]] static Result<SliceReader> open(const ExpertSource& source, ReadMode mode,
                                                ReadFunction read);
  SliceReader(SliceReader&&) noexcept;
  ~SliceReader();

  // Bytes of staging that the largest expert needs, at an address aligned to kDirectAlignment.
  [[nodiscard]] size_t staging_bytes() const;
  // The slices of one expert, in `staging`. Errors: the file ends early, the system's own; each
  // names tensor, layer, expert and file.
  [[nodiscard]] Result<ExpertBytes> read(ExpertKey key, std::span<std::byte> staging) const;
  // Whether the files still hold all slices of this expert: a mapping of a truncated file faults.
  [[nodiscard]] Status check_present(ExpertKey key) const;
  // Whether reads of this shard go past the page cache, as far as is known.
  [[nodiscard]] ReadMode mode(uint32_t shard) const;

 private:
  struct Impl;
  explicit SliceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::experts
