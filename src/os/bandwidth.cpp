#include "os/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "base/random.h"
#include "os/memory.h"
#include "os/thread_pool.h"

namespace godwit {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 20;
constexpr size_t kLine = 64;
constexpr int kPasses = 5;

}  // namespace

// Prefetches far enough ahead that arithmetic never waits. One word of each line is enough: memory
// moves lines.
uint64_t read_lines(std::span<const std::byte> bytes) {
  uint64_t sums[4] = {0, 0, 0, 0};
  for (size_t at = 0; at + 4 * kLine <= bytes.size(); at += 4 * kLine) {
    const std::byte* const p = bytes.data() + at;
    for (size_t i = 0; i < 4; ++i) {
      __builtin_prefetch(p + 4096 + i * kLine, 0, 2);
      uint64_t word = 0;
      std::memcpy(&word, p + i * kLine, sizeof word);
      sums[i] += word;
    }
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

Result<double> measure_read_bandwidth_gbps(size_t n_threads) {
  Result<AlignedBuffer> buffer = AlignedBuffer::create(kBufferBytes, 4096);
  if (!buffer) return fail(std::move(buffer).error().with("measuring bandwidth"));
  std::byte* const data = buffer->data();
  ThreadPool pool(n_threads);
  const size_t part = kBufferBytes / n_threads / kLine * kLine;
  // Pages that differ: equal ones may be one page to the machine below a virtual one.
  pool.run([&](size_t thread) {
    RandomStream random(thread);
    for (size_t i = 0; i < part; i += sizeof(uint64_t)) {
      const uint64_t word = random.bits();
      std::memcpy(data + thread * part + i, &word, sizeof word);
    }
  });

  double best = 0;
  std::atomic<uint64_t> sink{0};
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](size_t thread) { sink += read_lines({data + thread * part, part}); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(part * n_threads) / seconds.count() * 1e-9);
  }
  return best;
}

}  // namespace godwit
