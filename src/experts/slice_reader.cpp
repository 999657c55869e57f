#include "experts/slice_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace godwit::experts {
namespace {

std::string errno_text(int code) { return std::generic_category().message(code); }

int64_t system_read(int file, std::span<std::byte> to, uint64_t offset) {
  const ssize_t n = ::pread(file, to.data(), to.size(), static_cast<off_t>(offset));
  return n < 0 ? -errno : n;
}

struct Shard {
  Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard() {
    if (buffered >= 0) ::close(buffered);
    if (direct >= 0) ::close(direct);
  }

  int buffered = -1;
  int direct = -1;                       // -1: the file system refuses O_DIRECT
  std::atomic<bool> use_direct = false;  // until a direct read is refused
};

// Staging that a slice needs: it may begin and end anywhere within an aligned block.
uint64_t staging_of(uint64_t slice_bytes) {
  return slice_bytes == 0 ? 0 : round_up(slice_bytes, kDirectAlignment) + kDirectAlignment;
}

}  // namespace

struct SliceReader::Impl {
  const ExpertSource& source;
  ReadFunction read_at;
  std::deque<Shard> shards;
  size_t staging_bytes = 0;

  [[nodiscard]] Status open_shards(ReadMode mode);
  // Fills `to` as far as the file goes, at least `needed` bytes of it.
  [[nodiscard]] Status fill(Shard& shard, std::span<std::byte> to, uint64_t offset,
                            uint64_t needed);
  [[nodiscard]] Result<std::span<const std::byte>> read_slice(Slice place,
                                                              std::span<std::byte> staging);
};

Status SliceReader::Impl::open_shards(ReadMode mode) {
  for (const std::filesystem::path& path : source.shards()) {
    Shard& shard = shards.emplace_back();
    shard.buffered = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (shard.buffered < 0) {
      return fail("experts: cannot open {}: {}", path.string(), errno_text(errno));
    }
    // Experts are read whole and in no order: read-ahead would fetch their neighbours.
    ::posix_fadvise(shard.buffered, 0, 0, POSIX_FADV_RANDOM);
    if (mode == ReadMode::kBuffered) continue;
    shard.direct = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
    shard.use_direct = shard.direct >= 0;
  }
  return {};
}

Status SliceReader::Impl::fill(Shard& shard, std::span<std::byte> to, uint64_t offset,
                               uint64_t needed) {
  uint64_t done = 0;
  while (done < needed) {
    // After a read that ended between blocks, the rest cannot be read directly.
    const bool direct = shard.use_direct && done % kDirectAlignment == 0;
    const int file = direct ? shard.direct : shard.buffered;
    const int64_t n = read_at(file, to.subspan(done), offset + done);
    if (n == -EINTR) continue;
    if (n == -EINVAL && direct) {
      shard.use_direct = false;
      continue;
    }
    if (n < 0) return fail("{}", errno_text(static_cast<int>(-n)));
    if (n == 0) {
      return fail("the file ends {} bytes early, at byte {}", needed - done, offset + done);
    }
    done += static_cast<uint64_t>(n);
  }
  return {};
}

Result<std::span<const std::byte>> SliceReader::Impl::read_slice(Slice place,
                                                                 std::span<std::byte> staging) {
  const uint64_t begin = place.offset / kDirectAlignment * kDirectAlignment;
  const uint64_t lead = place.offset - begin;
  const std::span<std::byte> block = staging.first(round_up(lead + place.bytes, kDirectAlignment));
  // The last block may reach beyond the end of the file; only the slice itself must be there.
  const Status filled = fill(shards[place.shard], block, begin, lead + place.bytes);
  if (!filled) return fail(filled.error());
  return block.subspan(lead, place.bytes);
}

Result<SliceReader> SliceReader::open(const ExpertSource& source, ReadMode mode,
                                      ReadFunction read) {
  auto impl =
      std::make_unique<Impl>(Impl{.source = source,
                                  .read_at = read ? std::move(read) : ReadFunction(system_read),
                                  .shards = {}});
  if (auto opened = impl->open_shards(mode); !opened) return fail(std::move(opened.error()));
  for (uint32_t layer = 0; layer < source.n_layers(); ++layer) {
    if (source.n_experts(layer) == 0) continue;
    uint64_t sum = 0;
    for (const Part part : kAllParts) sum += staging_of(source.slice({layer, 0}, part).bytes);
    impl->staging_bytes = std::max<size_t>(impl->staging_bytes, sum);
  }
  return SliceReader(std::move(impl));
}

SliceReader::SliceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SliceReader::SliceReader(SliceReader&&) noexcept = default;
SliceReader::~SliceReader() = default;

size_t SliceReader::staging_bytes() const { return impl_->staging_bytes; }

Result<ExpertBytes> SliceReader::read(ExpertKey key, std::span<std::byte> staging) const {
  check(staging.size() >= staging_bytes() &&
            reinterpret_cast<uintptr_t>(staging.data()) % kDirectAlignment == 0,
        "SliceReader::read: the staging buffer is too small or not aligned");
  ExpertBytes bytes;
  for (const Part part : kAllParts) {
    const Slice place = impl_->source.slice(key, part);
    if (place.bytes == 0) continue;
    const auto read = impl_->read_slice(place, staging);
    if (!read) {
      return fail("experts: cannot read {}: {}", impl_->source.describe(key, part),
                  read.error().message);
    }
    bytes[static_cast<size_t>(part)] = *read;
    staging = staging.subspan(staging_of(place.bytes));
  }
  return bytes;
}

Status SliceReader::check_present(ExpertKey key) const {
  for (const Part part : kAllParts) {
    const Slice place = impl_->source.slice(key, part);
    if (place.bytes == 0) continue;
    struct stat info{};
    if (::fstat(impl_->shards[place.shard].buffered, &info) != 0) {
      return fail("experts: cannot examine the file of {}: {}", impl_->source.describe(key, part),
                  errno_text(errno));
    }
    const auto size = static_cast<uint64_t>(info.st_size);
    if (place.offset + place.bytes > size) {
      return fail("experts: {} needs bytes up to {}, but the file now has {}",
                  impl_->source.describe(key, part), place.offset + place.bytes, size);
    }
  }
  return {};
}

ReadMode SliceReader::mode(uint32_t shard) const {
  return impl_->shards[shard].use_direct ? ReadMode::kDirect : ReadMode::kBuffered;
}

}  // namespace godwit::experts
