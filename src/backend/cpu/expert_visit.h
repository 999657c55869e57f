// One step's visit to the experts that its rows chose, in the order in which they become resident:
// those that are at once, the others as their reads end. Thread 0 drives it, all threads compute
// what a batch holds, with a barrier before and after each batch. Where a layer's slots are fewer
// than the experts chosen, it goes in groups, the next being read while one is computed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/result.h"
#include "experts/store.h"

namespace godwit::cpu {

// An expert whose matrices can be multiplied with.
struct VisitedExpert {
  uint32_t id = 0;
  const std::byte* slot = nullptr;  // its packed parts; null: they lie elsewhere, or are mapped
  experts::ExpertBytes mapped;      // its parts in file layout
};

class ExpertVisit {
 public:
  // `memory` is what the store's slots lie in; both must outlive this object.
  ExpertVisit(experts::ExpertStore& store, const std::byte* memory)
      : store_(store), memory_(memory) {}

  // By thread 0. Ends the visit before. `then`: a layer that will be asked for the same experts
  // next, or the same layer for none.
  void begin(uint32_t layer, std::span<const uint32_t> experts, uint32_t then);
  // By thread 0: the next batch, without waiting for a read; what the one before held may be
  // evicted from here on.
  void advance();
  // By all threads, after the barrier that follows advance(), where is_waiting(): until the first
  // read has ended, whose expert is then in the batch. Nobody spins meanwhile: readers and their
  // packing may need the processors.
  [[nodiscard]] bool is_waiting() const { return waiting_; }
  void wait(size_t thread);
  // By thread 0: gives everything back.
  void end();

  // By any thread, between a barrier after advance() and one before the next.
  [[nodiscard]] std::span<const VisitedExpert> batch() const { return batch_; }
  [[nodiscard]] bool is_last() const { return last_; }
  // Errors: an expert could not be read; there is no further batch then.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  struct Group {
    std::vector<uint32_t> experts;
    experts::Lease lease;
  };
  void open_groups();
  void take_ready(Group& group);
  void fail_with(const Error& error);

  experts::ExpertStore& store_;
  const std::byte* memory_;
  uint32_t layer_ = 0;
  size_t group_size_ = 0;
  size_t max_groups_ = 1;  // open at the same time
  std::vector<uint32_t> chosen_;
  size_t n_opened_ = 0;  // of chosen_, those in groups so far
  std::deque<Group> groups_;
  std::vector<VisitedExpert> batch_;
  bool last_ = true;
  bool waiting_ = false;
  uint32_t epoch_ = 0;                 // of arrived_ when advance() found nothing
  std::atomic<uint32_t> arrived_ = 0;  // ends of wait()
  Status status_;
};

}  // namespace godwit::cpu
