#include "os/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace godwit {
namespace {

// 1, as many as a small machine has, and more than any: the last makes every wait park.
constexpr size_t kSizes[] = {1, 2, 3, 8, 33};

TEST(ThreadPool, RunsTheBodyOnceOnEveryThread) {
  for (const size_t n : kSizes) {
    ThreadPool pool(n);
    ASSERT_EQ(pool.size(), n);
    std::vector<int> runs(n, 0);
    pool.run([&](size_t thread) { ++runs[thread]; });
    EXPECT_EQ(runs, std::vector<int>(n, 1));
  }
}

TEST(ThreadPool, TheCallerIsThreadZero) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ids(3);
  pool.run([&](size_t thread) { ids[thread] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[1], ids[2]);
}

// Plain, unsynchronised memory: a missing ordering is a wrong sum here and a report under TSan.
TEST(ThreadPool, WhatThreadsWroteIsVisibleAfterEachOfManyRuns) {
  for (const size_t n : kSizes) {
    ThreadPool pool(n);
    std::vector<uint64_t> partial(n, 0);
    uint64_t input = 0;
    uint64_t expected = 0;
    const uint64_t runs = n <= 2 ? 2000 : 300;
    for (uint64_t i = 0; i < runs; ++i) {
      input = i;
      pool.run([&](size_t thread) { partial[thread] += input + thread; });
      expected += i * n + n * (n - 1) / 2;
      ASSERT_EQ(std::accumulate(partial.begin(), partial.end(), uint64_t{0}), expected);
    }
  }
}

// Each phase reads what every thread wrote in the phase before.
TEST(ThreadPool, BarrierSeparatesPhases) {
  for (const size_t n : kSizes) {
    ThreadPool pool(n);
    constexpr size_t kPhases = 200;
    std::vector<uint64_t> row(n, 1);
    std::vector<uint64_t> next(n, 0);
    std::atomic<uint64_t> wrong{0};
    pool.run([&](size_t thread) {
      for (size_t phase = 0; phase < kPhases; ++phase) {
        uint64_t sum = 0;
        for (const uint64_t value : row) sum += value;
        if (sum != n * (phase + 1)) wrong.fetch_add(1, std::memory_order_relaxed);
        next[thread] = row[thread] + 1;
        pool.barrier();
        row[thread] = next[(thread + 1) % n];
        pool.barrier();
      }
    });
    EXPECT_EQ(wrong.load(), 0u) << n << " threads";
  }
}

TEST(ThreadPool, SlowThreadIsWaitedFor) {
  ThreadPool pool(3);
  // Longer than any spin, so that the others park at the barrier and the caller at the end.
  constexpr auto kLong = std::chrono::milliseconds(20);
  for (size_t slow = 0; slow < 3; ++slow) {
    std::vector<int> before(3, 0);
    std::vector<int> after(3, 0);
    std::atomic<int> missing{0};
    pool.run([&](size_t thread) {
      if (thread == slow) std::this_thread::sleep_for(kLong);
      before[thread] = 1;
      pool.barrier();
      missing.fetch_add(3 - (before[0] + before[1] + before[2]));
      if (thread == slow) std::this_thread::sleep_for(kLong);
      after[thread] = 1;
    });
    EXPECT_EQ(missing.load(), 0);
    EXPECT_EQ(after, std::vector<int>(3, 1));
  }
}

TEST(ThreadPool, RunsAgainAfterTheWorkersParked) {
  ThreadPool pool(4);
  std::atomic<int> runs{0};
  for (int i = 0; i < 3; ++i) {
    pool.run([&](size_t) { runs.fetch_add(1, std::memory_order_relaxed); });
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  EXPECT_EQ(runs.load(), 12);
}

TEST(ThreadPool, EndsWhileParkedSpinningOrUnused) {
  for (const size_t n : kSizes) {
    {
      const ThreadPool unused(n);
    }
    {
      const ThreadPool parked(n);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ThreadPool spinning(n);
    spinning.run([](size_t) {});
  }
}

TEST(ThreadPoolDeathTest, RefusesZeroThreads) {
  EXPECT_DEATH({ const ThreadPool pool(0); }, "1 to 65535");
}

}  // namespace
}  // namespace godwit
