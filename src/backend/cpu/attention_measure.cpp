#include "backend/cpu/attention_measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "backend/cpu/attention.h"
#include "backend/kv_rounding.h"
#include "base/check.h"
#include "base/random.h"
#include "os/bandwidth.h"
#include "os/memory.h"
#include "os/thread_pool.h"

namespace godwit::cpu {
namespace {

// Together the layers are more than any cache holds.
constexpr size_t kLayerBytes = size_t{320} << 20;
constexpr size_t kMostLayers = 4096;
constexpr size_t kMinRounds = 5;
constexpr size_t kMaxRounds = 25;
constexpr double kEnoughSeconds = 0.4;
// Results are compared over the last so many positions: the generic kernels take their time.
constexpr size_t kComparedPositions = 1500;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

Status check_case(const AttentionCase& c) {
  if (c.head_dim == 0 || c.head_dim % 8 != 0 || c.head_dim > kMaxHeadDim) {
    return fail("attention: heads of {} dimensions; expected a multiple of 8, at most {}",
                c.head_dim, kMaxHeadDim);
  }
  for (const TensorType type : {c.k_type, c.v_type}) {
    if (Status s = backend::check_kv(type, c.head_dim); !s)
      return fail(Error(s.error()).with("attention"));
  }
  if (c.n_kv_heads == 0 || c.n_heads == 0 || c.n_heads % c.n_kv_heads != 0) {
    return fail("attention: {} heads do not share {} KV heads evenly", c.n_heads, c.n_kv_heads);
  }
  if (c.n_tokens == 0 || c.n_positions < c.n_tokens || c.n_threads == 0) {
    return fail("attention: {} tokens among {} positions on {} threads", c.n_tokens, c.n_positions,
                c.n_threads);
  }
  return {};
}

class Measurement {
 public:
  static Result<Measurement> create(const AttentionCase& c) {
    Measurement m(c);
    m.k_bytes_ = kv_bytes(c.k_type, c.n_kv_heads, c.head_dim, c.n_positions);
    m.v_bytes_ = kv_bytes(c.v_type, c.n_kv_heads, c.head_dim, c.n_positions);
    // Decode goes through many layers, so that nothing is cached; prefill reuses one.
    m.n_layers_ =
        c.n_tokens > 1 ? 1 : std::clamp(kLayerBytes / (m.k_bytes_ + m.v_bytes_), 1ul, kMostLayers);
    const size_t scratch_bytes = attention_scratch_bytes({.n_heads = c.n_heads,
                                                          .n_kv_heads = c.n_kv_heads,
                                                          .head_dim = c.head_dim,
                                                          .max_positions = c.n_positions,
                                                          .max_tokens = c.n_tokens,
                                                          .block = c.block});
    for (const auto& [buffer, bytes] :
         {std::pair{&m.k_, m.n_layers_ * m.k_bytes_}, std::pair{&m.v_, m.n_layers_ * m.v_bytes_},
          std::pair{&m.scratch_, scratch_bytes}}) {
      Result<AlignedBuffer> made = AlignedBuffer::create(std::max<size_t>(bytes, 64), 64);
      if (!made) return fail(std::move(made).error().with("measuring attention"));
      *buffer = std::move(*made);
    }
    return m;
  }

  AttentionSpeed run() {
    ThreadPool pool(case_.n_threads);
    fill(pool);
    compare(pool);
    std::vector<double> seconds;
    std::vector<double> reads;
    std::vector<double> shares;
    const Clock::time_point begin = Clock::now();
    const double bytes = static_cast<double>(k_bytes_ + v_bytes_);
    while (seconds.size() < kMinRounds ||
           (seconds.size() < kMaxRounds && seconds_since(begin) < kEnoughSeconds)) {
      reads.push_back(bytes / time_read(pool) * 1e-9);
      seconds.push_back(time_layers(pool));
      shares.push_back(bytes / seconds.back() * 1e-9 / reads.back());
    }
    const double s = median(seconds);
    const double seen = static_cast<double>(case_.n_positions) -
                        static_cast<double>(case_.n_tokens - 1) / 2.0;  // by a token, on average
    const double macs = 2.0 * static_cast<double>(q_.size()) * seen;
    return {.us = s * 1e6,
            .bytes = k_bytes_ + v_bytes_,
            .gbps = bytes / s * 1e-9,
            .read_gbps = median(reads),
            .share = median(shares),
            .gmacs = macs / s * 1e-9};
  }

 private:
  explicit Measurement(const AttentionCase& c)
      : case_(c), q_(c.n_tokens * width()), out_(c.n_tokens * width()) {}

  [[nodiscard]] size_t width() const { return case_.n_heads * case_.head_dim; }

  [[nodiscard]] KvCache layer(size_t i) {
    return {.k = k_.data() + i * k_bytes_,
            .v = v_.data() + i * v_bytes_,
            .k_type = case_.k_type,
            .v_type = case_.v_type,
            .n_kv_heads = case_.n_kv_heads,
            .head_dim = case_.head_dim,
            .capacity = kv_capacity(case_.n_positions)};
  }

  // No two layers are alike: equal pages may be one page to the machine below a virtual one.
  void fill(ThreadPool& pool) {
    std::vector<float> numbers(size_t{1} << 16);
    RandomStream random(1);
    for (float& x : numbers) x = static_cast<float>(random.bell());
    for (float& x : q_) x = static_cast<float>(random.bell());
    const size_t rows = n_layers_ * case_.n_kv_heads;
    pool.run([&](size_t thread) {
      RandomStream place(thread + 2);
      const auto pick = [&] {
        return numbers.data() + place.bits() % (numbers.size() - case_.head_dim);
      };
      for (size_t row = thread; row < rows; row += pool.size()) {
        const KvCache cache = layer(row / case_.n_kv_heads);
        for (size_t p = 0; p < case_.n_positions; ++p) {
          kv_store(cache, row % case_.n_kv_heads, p, pick(), pick(), case_.isa);
        }
      }
    });
  }

  void attend(ThreadPool& pool, size_t i, size_t window, Isa isa) {
    const AttentionArgs args = {.q = q_.data(),
                                .q_stride = width(),
                                .cache = layer(i),
                                .n_heads = case_.n_heads,
                                .first_position = case_.n_positions - case_.n_tokens,
                                .n_tokens = case_.n_tokens,
                                .scale = 0.1f,
                                .window = window,
                                .block = case_.block,
                                .scratch = scratch_.bytes(),
                                .out = out_.data(),
                                .out_stride = width()};
    pool.run([&](size_t thread) {
      attention_run(args, thread, pool.size(), isa);
      pool.barrier();
      attention_merge(args, thread, pool.size(), isa);
    });
  }

  void compare(ThreadPool& pool) {
    attend(pool, 0, kComparedPositions, Isa::kGeneric);
    const std::vector<float> expected = out_;
    attend(pool, 0, kComparedPositions, case_.isa);
    check(out_ == expected, "attention differs from the generic kernels'");
  }

  // Seconds that the bytes of one layer take.
  double time_read(ThreadPool& pool) {
    std::atomic<uint64_t> sink{0};
    const Clock::time_point begin = Clock::now();
    pool.run([&](size_t thread) {
      for (const std::span<const std::byte> all :
           {std::as_const(k_).bytes(), std::as_const(v_).bytes()}) {
        const size_t part = all.size() / pool.size();
        sink += read_lines(all.subspan(thread * part, part));
      }
    });
    return seconds_since(begin) / static_cast<double>(n_layers_);
  }

  // Seconds of one layer.
  double time_layers(ThreadPool& pool) {
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < n_layers_; ++i) attend(pool, i, 0, case_.isa);
    return seconds_since(begin) / static_cast<double>(n_layers_);
  }

  AttentionCase case_;
  size_t k_bytes_ = 0;
  size_t v_bytes_ = 0;
  size_t n_layers_ = 1;
  AlignedBuffer k_;
  AlignedBuffer v_;
  AlignedBuffer scratch_;
  std::vector<float> q_;
  std::vector<float> out_;
};

}  // namespace

Result<AttentionSpeed> measure_attention(const AttentionCase& c) {
  if (Status s = check_case(c); !s) return fail(s.error());
  Result<Measurement> measurement = Measurement::create(c);
  if (!measurement) return fail(std::move(measurement).error());
  return measurement->run();
}

}  // namespace godwit::cpu
