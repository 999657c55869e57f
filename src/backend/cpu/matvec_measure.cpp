#include "backend/cpu/matvec_measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cpu/walker.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/median.h"
#include "base/random.h"
#include "os/bandwidth.h"
#include "os/machine.h"
#include "os/memory.h"
#include "os/thread_pool.h"
#include "quant/formats.h"

namespace godwit::cpu {
namespace {

constexpr uint64_t kLeastCopiesBytes = uint64_t{512} << 20;
// Random rows, repeated; no power of two, so that equal pages are rare.
constexpr size_t kDistinctRows = 61 * kTileRows;
constexpr size_t kCachedRows = 64;
constexpr size_t kCachedRuns = 200;
constexpr size_t kVerifiedRows = 16;
// A round of a prompt ends after this long, however many copies there are.
constexpr double kRoundSeconds = 0.1;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Status check_case(const MatVecCase& c) {
  const TensorGeometry& geometry = tensor_geometry(c.kernel->type);
  const size_t block = std::max<size_t>(geometry.block_weights, 32);
  if (c.rows == 0 || c.cols == 0 || c.cols % block != 0) {
    return fail("{} of {} x {}: expected rows of a multiple of {} weights", geometry.name, c.rows,
                c.cols, block);
  }
  if (c.n_planes == 0 || c.n_planes > activation_planes(c.kernel->activation)) {
    return fail("{} in {} planes: its activations have {}", geometry.name, c.n_planes,
                activation_planes(c.kernel->activation));
  }
  if (c.n_tokens == 0 || c.n_threads == 0 || c.n_rounds == 0) {
    return fail("{}: {} tokens on {} threads in {} rounds", geometry.name, c.n_tokens, c.n_threads,
                c.n_rounds);
  }
  return {};
}

class Measurement {
 public:
  // `n_copies` of rows x cols.
  static Result<Measurement> create(const MatVecCase& c, size_t rows, size_t n_copies) {
    Measurement m(c, rows, n_copies);
    const ActivationKind kind = c.kernel->activation;
    const size_t n = c.n_planes * c.n_tokens;
    const size_t scratch = activation_bytes(kind, n, c.cols);
    for (const auto& [buffer, bytes] :
         {std::pair{&m.weights_, n_copies * m.copy_bytes_}, std::pair{&m.scratch_, scratch}}) {
      Result<AlignedBuffer> made = AlignedBuffer::create(std::max<size_t>(bytes, 64), 64);
      if (!made) return fail(std::move(made).error().with("measuring a mat-vec"));
      *buffer = std::move(*made);
    }
    m.fill_weights();
    m.fill_activations(kind);
    return m;
  }

  [[nodiscard]] uint64_t copy_bytes() const { return copy_bytes_; }
  [[nodiscard]] size_t n_copies() const { return n_copies_; }
  [[nodiscard]] double multiply_adds() const {
    return static_cast<double>(rows_) * static_cast<double>(case_.cols) *
           static_cast<double>(case_.n_tokens);
  }

  // Seconds that reading one copy takes.
  double time_read(ThreadPool& pool) const {
    std::atomic<uint64_t> sink{0};
    const std::span<const std::byte> all = weights_.bytes();
    const size_t part = all.size() / pool.size() / 64 * 64;
    const Clock::time_point begin = Clock::now();
    pool.run([&](size_t thread) { sink += read_lines(all.subspan(thread * part, part)); });
    const double read = static_cast<double>(part * pool.size());
    return seconds_since(begin) * static_cast<double>(copy_bytes_) / read;
  }

  // Seconds of one of `n` products, with copies from `first` on.
  double time_products(ThreadPool& pool, size_t first, size_t n) {
    const Clock::time_point begin = Clock::now();
    pool.run([&](size_t thread) {
      const Share mine = share_of(rows_, kTileRows, thread, pool.size());
      for (size_t i = 0; i < n; ++i) {
        multiply((first + i) % n_copies_, mine);
        pool.barrier();
      }
    });
    return seconds_since(begin) / static_cast<double>(n);
  }

  // The same where each thread multiplies with a copy of its own, whole.
  double time_own_copies(ThreadPool& pool, size_t n) {
    y_.resize(pool.size() * y_floats());
    const Clock::time_point begin = Clock::now();
    pool.run([&](size_t thread) {
      for (size_t i = 0; i < n; ++i) run_kernel(thread, {0, rows_}, &y_[thread * y_floats()]);
    });
    return seconds_since(begin) / static_cast<double>(n);
  }

  // Of some rows of the last product against the weights in double precision.
  void verify(ThreadPool& pool) {
    time_products(pool, n_copies_ - 1, 1);
    std::vector<float> weights(case_.cols);
    float largest_x = 0;
    for (size_t i = 0; i < case_.cols; ++i) largest_x = std::max(largest_x, std::abs(x_[i]));
    const auto largest = static_cast<double>(largest_x);
    const size_t first = (n_copies_ - 1) * packed_rows_;
    for (size_t r = 0; r < std::min(rows_, kVerifiedRows); ++r) {
      const size_t distinct = (first + r) % kDistinctRows;
      quant::decode_row(case_.kernel->type,
                        std::span(file_).subspan(distinct * file_row_bytes(), file_row_bytes()),
                        weights);
      double expected = 0;
      double weight_sum = 0;
      for (size_t i = 0; i < case_.cols; ++i) {
        expected += static_cast<double>(weights[i]) * static_cast<double>(x_[i]);
        weight_sum += static_cast<double>(std::abs(weights[i]));
      }
      // Half a step of eight bits, with room for the sums.
      const double bound = weight_sum * largest / 200;
      check(std::abs(static_cast<double>(y_[r]) - expected) <= bound,
            "a mat-vec that is being timed is wrong");
    }
  }

 private:
  Measurement(const MatVecCase& c, size_t rows, size_t n_copies)
      : case_(c),
        rows_(rows),
        packed_rows_(round_up(rows, kTileRows)),
        copy_bytes_(packed_rows_ * find_packing(c.kernel->type)->packed_row_bytes(c.cols)),
        n_copies_(n_copies),
        x_(c.n_tokens * c.cols),
        y_(y_floats()) {}

  [[nodiscard]] size_t file_row_bytes() const { return row_bytes(case_.kernel->type, case_.cols); }
  [[nodiscard]] size_t y_floats() const { return case_.n_planes * case_.n_tokens * packed_rows_; }

  void fill_weights() {
    const TensorType type = case_.kernel->type;
    const Packing& packing = *find_packing(type);
    RandomStream random(3);
    file_.resize(kDistinctRows * file_row_bytes());
    const size_t block = tensor_geometry(type).block_bytes;
    for (size_t at = 0; at < file_.size(); at += block) {
      quant::find_format(type)->random_block(random, 1.0f, &file_[at]);
    }
    std::vector<std::byte> pattern(kDistinctRows * packing.packed_row_bytes(case_.cols));
    packing.pack(file_.data(), kDistinctRows, case_.cols, pattern.data());
    const std::span<std::byte> all = weights_.bytes().first(n_copies_ * copy_bytes_);
    for (size_t at = 0; at < all.size(); at += pattern.size()) {
      std::memcpy(&all[at], pattern.data(), std::min(pattern.size(), all.size() - at));
    }
  }

  void fill_activations(ActivationKind kind) {
    RandomStream random(7);
    for (float& value : x_) value = static_cast<float>(random.bell());
    const size_t n = case_.n_tokens;
    activations_ = layout_activations(kind, x_.data(), case_.cols, case_.n_planes * n, case_.cols,
                                      scratch_.bytes());
    if (case_.n_planes == 1) {
      quantize_activations(kind, activations_, x_.data(), case_.cols, case_.cols, {0, n},
                           case_.kernel->isa);
    } else {
      quantize_planes(kind, activations_, x_.data(), case_.cols, n, case_.cols, {0, n},
                      case_.kernel->isa);
    }
  }

  // Rows of a copy to y [n_planes * n_tokens, packed_rows_], the planes of a token then added.
  void multiply(size_t copy, Share rows) {
    if (rows.begin == rows.end) return;
    run_kernel(copy, rows, y_.data());
    if (case_.n_planes == 1) return;
    for (size_t t = 0; t < case_.n_tokens; ++t) {
      float* const first = &y_[t * packed_rows_];
      const float* const second = &y_[(case_.n_tokens + t) * packed_rows_];
      for (size_t r = rows.begin; r < rows.end; ++r) first[r] += second[r];
    }
  }

  void run_kernel(size_t copy, Share rows, float* y) const {
    case_.kernel->run({.weights = weights_.data() + copy * copy_bytes_,
                       .rows = rows_,
                       .cols = case_.cols,
                       .row_begin = rows.begin,
                       .row_end = rows.end,
                       .x = activations_,
                       .n_tokens = case_.n_planes * case_.n_tokens,
                       .y = y,
                       .y_stride = packed_rows_});
  }

  MatVecCase case_;
  size_t rows_;
  size_t packed_rows_;
  uint64_t copy_bytes_;
  size_t n_copies_;
  std::vector<float> x_;         // [n_tokens, cols]
  std::vector<float> y_;         // y_floats(), for each thread where they work apart
  std::vector<std::byte> file_;  // kDistinctRows as files have them
  AlignedBuffer weights_;
  AlignedBuffer scratch_;
  Activations activations_;
};

double giga_per_second(double n, double seconds) { return seconds > 0 ? n / seconds * 1e-9 : 0; }

}  // namespace

uint64_t matvec_copies_bytes() {
  uint64_t last_caches = 0;
  uint32_t level = 0;
  for (const CacheFacts& cache : machine_facts().caches) {
    if (cache.level < level) continue;
    level = cache.level;
    last_caches = cache.bytes * cache.n_caches;
  }
  return std::max(kLeastCopiesBytes, 4 * last_caches);
}

Result<MatVecSpeed> measure_matvec(const MatVecCase& c) {
  if (Status s = check_case(c); !s) return fail(s.error());
  const uint64_t matrix_bytes =
      round_up(c.rows, kTileRows) * find_packing(c.kernel->type)->packed_row_bytes(c.cols);
  const size_t n_copies = div_up(matvec_copies_bytes(), matrix_bytes);
  Result<Measurement> made = Measurement::create(c, c.rows, n_copies);
  if (!made) return fail(std::move(made).error());
  ThreadPool pool(c.n_threads);
  made->verify(pool);
  const double trial = made->time_products(pool, 0, 1);
  const size_t n_products =
      std::clamp<size_t>(static_cast<size_t>(kRoundSeconds / trial), 1, n_copies);

  std::vector<double> seconds;
  std::vector<double> reads;
  std::vector<double> shares;
  const auto bytes = static_cast<double>(matrix_bytes);
  reads.push_back(giga_per_second(bytes, made->time_read(pool)));
  for (size_t round = 0; round < c.n_rounds; ++round) {
    seconds.push_back(made->time_products(pool, round * n_products, n_products));
    reads.push_back(giga_per_second(bytes, made->time_read(pool)));
    // Of the reads before and after, the one that less came between.
    const double read = std::max(reads[round], reads[round + 1]);
    shares.push_back(giga_per_second(bytes, seconds.back()) / read);
  }
  const double s = median_of(std::move(seconds));
  return MatVecSpeed{.us = s * 1e6,
                     .bytes = matrix_bytes,
                     .n_copies = n_copies,
                     .gbps = giga_per_second(bytes, s),
                     .read_gbps = median_of(std::move(reads)),
                     .share = median_of(std::move(shares)),
                     .gmacs = giga_per_second(made->multiply_adds(), s)};
}

Result<MatVecSpeed> measure_cached_matvec(const MatVecCase& c) {
  if (Status s = check_case(c); !s) return fail(s.error());
  Result<Measurement> made = Measurement::create(c, kCachedRows, c.n_threads);
  if (!made) return fail(std::move(made).error());
  ThreadPool pool(c.n_threads);
  double best = made->time_own_copies(pool, 1);
  const size_t n = std::clamp<size_t>(static_cast<size_t>(kRoundSeconds / best), 1, kCachedRuns);
  for (size_t round = 0; round < c.n_rounds; ++round) {
    best = std::min(best, made->time_own_copies(pool, n));
  }
  const auto n_threads = static_cast<double>(pool.size());
  const uint64_t bytes = made->copy_bytes() * pool.size();
  return MatVecSpeed{.us = best * 1e6,
                     .bytes = bytes,
                     .n_copies = 1,
                     .gbps = giga_per_second(static_cast<double>(bytes), best),
                     .read_gbps = 0,
                     .share = 0,
                     .gmacs = giga_per_second(n_threads * made->multiply_adds(), best)};
}

}  // namespace godwit::cpu
