// A pool of pinned-count worker threads that run one function at a time on all of them, with a
// barrier inside. Waits spin briefly, then park, so that a decode step costs a microsecond between
// threads while an idle engine costs nothing. The caller of run() is thread 0.
#pragma once

#include <cstddef>
#include <memory>

namespace godwit {

class ThreadPool {
 public:
  explicit ThreadPool(size_t n_threads);  // >= 1
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // What was asked for, or fewer where the system refuses to start more.
  [[nodiscard]] size_t size() const;

  // Runs body(context, thread) on every thread and returns when all have finished. Everything
  // written before run() is visible to the threads, and what they wrote is visible after. One
  // caller at a time, and never from inside a body.
  void run(void (*body)(void* context, size_t thread), void* context);

  template <class F>
  void run(F&& body) {
    run([](void* context, size_t thread) { (*static_cast<F*>(context))(thread); }, &body);
  }

  // Inside run(): waits until every thread has come here. Writes before are visible after.
  void barrier();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit
