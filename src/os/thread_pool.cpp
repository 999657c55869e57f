#include "os/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"

namespace godwit {
namespace {

// A pause takes 40 to 140 cycles, so a wait spins for some 50 to 200 us before it parks: longer
// than the threads of one decode step drift apart, shorter than anybody notices in an idle engine.
constexpr int kSpinPauses = 4000;
// With more threads than processors, spinning only delays the thread that is waited for.
constexpr int kSpinPausesOversubscribed = 32;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

size_t usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<size_t>(CPU_COUNT(&set));
}

// Waits until `word` is no longer `old`: a short spin, then a futex. Whatever was written before
// the change is visible afterwards.
void wait_for_change(const std::atomic<uint32_t>& word, uint32_t old, int spin_pauses) {
  for (int i = 0; i < spin_pauses; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

// Threads are not pinned. A pinned thread that shares its processor with somebody else's work
// holds up every barrier until the scheduler lets it run again, and a server has such other work;
// an unpinned one is moved away. `taskset` and `numactl` still confine the whole process.
struct ThreadPool::Impl {
  using Body = void (*)(void* context, size_t thread);

  // Each word that threads wait on has a cache line of its own: the pollers of one must not slow
  // the writers of another.
  alignas(64) std::atomic<uint32_t> run_epoch{0};   // +1 starts a run; also wakes threads to leave
  alignas(64) std::atomic<uint32_t> unfinished{0};  // workers still inside the current run
  alignas(64) std::atomic<uint32_t> arrived{0};     // threads at the barrier
  alignas(64) std::atomic<uint32_t> barrier_epoch{0};  // +1 opens it; its parity is the "sense"

  // Written by the caller of run() before run_epoch, read by workers after it.
  alignas(64) Body body = nullptr;
  void* context = nullptr;
  bool leaving = false;
  uint32_t n_threads = 1;
  int spin_pauses = kSpinPauses;

  std::vector<std::thread> workers;

  void serve(size_t thread) {
    uint32_t seen = 0;
    while (true) {
      wait_for_change(run_epoch, seen, spin_pauses);
      ++seen;
      if (leaving) return;
      body(context, thread);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_one();
    }
  }

  void start_run() {
    run_epoch.fetch_add(1, std::memory_order_release);
    run_epoch.notify_all();
  }
};

ThreadPool::ThreadPool(size_t n_threads) : impl_(std::make_unique<Impl>()) {
  check(n_threads >= 1 && n_threads < (1u << 16), "a thread pool has 1 to 65535 threads");
  if (n_threads > usable_processors()) impl_->spin_pauses = kSpinPausesOversubscribed;
  impl_->workers.reserve(n_threads - 1);
  for (size_t thread = 1; thread < n_threads; ++thread) {
    try {
      impl_->workers.emplace_back([impl = impl_.get(), thread] { impl->serve(thread); });
    } catch (const std::system_error&) {
      break;  // the system refuses more; the pool is as large as it got
    }
  }
  impl_->n_threads = static_cast<uint32_t>(impl_->workers.size() + 1);
}

ThreadPool::~ThreadPool() {
  impl_->leaving = true;
  impl_->start_run();
  for (std::thread& worker : impl_->workers) worker.join();
}

size_t ThreadPool::size() const { return impl_->n_threads; }

void ThreadPool::run(void (*body)(void* context, size_t thread), void* context) {
  Impl& pool = *impl_;
  if (pool.n_threads == 1) {
    body(context, 0);
    return;
  }
  pool.body = body;
  pool.context = context;
  pool.unfinished.store(pool.n_threads - 1, std::memory_order_relaxed);
  pool.start_run();
  body(context, 0);
  while (true) {
    const uint32_t left = pool.unfinished.load(std::memory_order_acquire);
    if (left == 0) return;
    // Only the last worker notifies; the spin sees each step down, a parked wait only the end.
    wait_for_change(pool.unfinished, left, pool.spin_pauses);
  }
}

void ThreadPool::barrier() {
  Impl& pool = *impl_;
  if (pool.n_threads == 1) return;
  // Read before arriving: once the last has arrived, the epoch may move at any moment.
  const uint32_t epoch = pool.barrier_epoch.load(std::memory_order_relaxed);
  if (pool.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == pool.n_threads) {
    pool.arrived.store(0, std::memory_order_relaxed);
    pool.barrier_epoch.store(epoch + 1, std::memory_order_release);
    pool.barrier_epoch.notify_all();
    return;
  }
  wait_for_change(pool.barrier_epoch, epoch, pool.spin_pauses);
}

}  // namespace godwit
