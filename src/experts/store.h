// The store of routed experts: keeps as many as the plan has slots for, reads the others when they
// are asked for, and counts what that costs. It owns policy, slot numbers and reads; it knows
// files, not kernels. A backend
//   1. makes an ExpertSource of the file's tensors and a SlotPlan of its packed sizes,
//   2. provides plan.bytes of memory (host or device: the store never touches it) and a function
//      that turns an expert's file bytes into its packed form in a slot of that memory,
//   3. per layer asks for the experts the router chose and computes each as it becomes resident:
//
//        Result<Lease> lease = store.acquire(layer, experts);
//        while (true) {
//          Result<std::optional<Resident>> ready = lease->next();   // hits first, then misses
//          if (!ready) return fail(...);                            // this request ends, no other
//          if (!*ready) break;                                      // all have been delivered
//          compute(experts[(*ready)->index], memory.subspan((*ready)->slot.offset, ...));
//        }                                                          // ~Lease releases the slots
//
// What is computed must not depend on the order of delivery: sum per row in the order of the ids.
// Thread-safe; meant for one caller (the thread that leads the compute pool) and any hints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "experts/slice_reader.h"
#include "experts/slot_plan.h"
#include "experts/slot_table.h"
#include "experts/source.h"
#include "experts/statistics.h"

namespace godwit::experts {

struct PackRequest {
  ExpertKey key;
  ExpertBytes parts;  // the file's bytes, valid during the call
  SlotRange slot;     // where the packed form goes
};

// Called from the store's read threads, several at a time, never two for the same slot. An error
// ends the requests that wait for this expert.
using PackFunction = std::function<Status(const PackRequest&)>;

inline constexpr uint32_t kMaxReadThreads = 64;

struct StoreOptions {
  uint32_t n_read_threads = 4;  // taken as 1 to kMaxReadThreads
  ReadMode read_mode = ReadMode::kDirect;
  ReadFunction read;  // empty: pread
};

// An expert that can be computed with until its lease is released.
struct Resident {
  size_t index = 0;    // in the ids given to acquire
  SlotRange slot;      // where its packed form is; unless CacheKind::kMapped:
  ExpertBytes mapped;  // its bytes in the mapped file, not packed
};

class Lease;

class ExpertStore {
 public:
  // `source` must outlive the store; `pack` may be empty for CacheKind::kMapped. Errors: a plan for
  // other layers than the source's, files that cannot be opened, memory for staging.
  [[nodiscard]] static Result<ExpertStore> create(const ExpertSource& source, SlotPlan plan,
                                                  PackFunction pack, const StoreOptions& options);
  ExpertStore(ExpertStore&&) noexcept;
  // Waits for reads in flight. No lease may be left.
  ~ExpertStore();

  // Pins the experts of `layer` that are resident, begins to read the others, and returns without
  // waiting for them. Ids may repeat. Errors: an id that the layer has not, more different ids than
  // capacity(layer), slots that other leases hold.
  [[nodiscard]] Result<Lease> acquire(uint32_t layer, std::span<const uint32_t> experts);

  // The most experts of one layer that a lease can hold; a caller with more (the rows of a prompt
  // may choose all of them) goes in groups.
  [[nodiscard]] uint32_t capacity(uint32_t layer) const;

  // Puts those that are resident, or on their way, before the others: what a caller that goes in
  // groups asks for first, before its other groups evict it.
  void sort_residents_first(uint32_t layer, std::span<uint32_t> experts) const;

  // These experts will probably be asked for next. Begins reads into slots that are free or least
  // recently used, as far as there are any; whatever acquire() asks for goes first, and those that
  // acquire() of this layer does not ask for are dropped if they have not been read yet.
  void hint(uint32_t layer, std::span<const uint32_t> experts);

  // CacheKind::kFull: reads every expert, in the order of the file. Otherwise does nothing: which
  // experts are worth a slot is not known before some have been asked for.
  [[nodiscard]] Status preload();

  [[nodiscard]] Statistics statistics() const;

 private:
  friend class Lease;
  struct Impl;
  explicit ExpertStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Holds the experts of one acquire(); the store must outlive it.
class Lease {
 public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&&) = delete;
  ~Lease();  // release()

  // The next expert that is resident, waiting if none is; nullopt when all have been delivered.
  // Errors: an expert could not be read or packed; the others can still be had. A read that another
  // request or a hint began is made once more before its failure is this one's.
  [[nodiscard]] Result<std::optional<Resident>> next();
  // How many next() gives without waiting, at least.
  [[nodiscard]] size_t n_ready() const { return ready_.size(); }
  // Whether next() has given everything.
  [[nodiscard]] bool is_drained() const { return ready_.empty() && waiting_.empty(); }
  // Unpins everything; what next() gave is no longer valid.
  void release();

 private:
  friend class ExpertStore;
  friend struct ExpertStore::Impl;
  struct Entry {
    size_t index = 0;  // in the ids
    uint32_t expert = 0;
    SlotIndex slot = kNoSlot;  // kNoSlot for kMapped
    bool joined = false;       // its read had begun before the lease asked for it
  };
  Lease(ExpertStore::Impl* store, uint32_t layer) : store_(store), layer_(layer) {}
  // Until something that is being read has ended; moves what is ready to ready_.
  [[nodiscard]] Status wait();
  // Asks anew for an expert whose read was another's and failed; false where there is no slot.
  [[nodiscard]] bool read_again(std::unique_lock<std::mutex>& lock, Entry& entry);

  ExpertStore::Impl* store_;
  uint32_t layer_;
  std::vector<SlotIndex> pinned_;  // in the order of the ids
  std::vector<Entry> ready_;       // not yet delivered, last first
  std::vector<Entry> waiting_;     // still being read
};

}  // namespace godwit::experts
