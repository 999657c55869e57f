#include "experts/store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "os/memory.h"

namespace godwit::experts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kPreloadGroup = 64;

uint64_t us_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

// What a slot's content is. A slot that is queued or being read has a pin of its own for that.
enum class State : uint8_t { kQueued, kReading, kReady, kFailed };

struct Content {
  State state = State::kQueued;
  bool unused_prefetch = false;  // a hint asked for it, and no acquire yet
  std::string error;             // of kFailed
};

std::vector<uint32_t> experts_per_layer(const ExpertSource& source) {
  std::vector<uint32_t> n(source.n_layers());
  for (uint32_t layer = 0; layer < n.size(); ++layer) n[layer] = source.n_experts(layer);
  return n;
}

size_t count_different(std::span<const uint32_t> experts) {
  std::vector<uint32_t> sorted(experts.begin(), experts.end());
  std::ranges::sort(sorted);
  return static_cast<size_t>(std::ranges::unique(sorted).begin() - sorted.begin());
}

// Asks the kernel to read a range of a mapping ahead.
void will_need(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t lead = begin % page;
  // Advice on a read-only mapping; madvise merely wants the address so.
  ::madvise(const_cast<std::byte*>(bytes.data()) - lead, bytes.size() + lead, MADV_WILLNEED);
}

}  // namespace

struct ExpertStore::Impl {
  Impl(const ExpertSource& source_in, SlotPlan plan_in, PackFunction pack_in, SliceReader reader_in)
      : source(source_in),
        plan(std::move(plan_in)),
        pack(std::move(pack_in)),
        reader(std::move(reader_in)),
        table(plan, experts_per_layer(source)),
        contents(table.n_slots()),
        layers(source.n_layers()) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  const ExpertSource& source;
  const SlotPlan plan;
  const PackFunction pack;
  const SliceReader reader;
  std::vector<AlignedBuffer> staging;  // one per thread

  mutable std::mutex mutex;          // guards everything from here on
  std::condition_variable work;      // the queues have grown, or the store ends
  std::condition_variable finished;  // a read has ended, or a pin has gone
  SlotTable table;
  std::vector<Content> contents;  // of each slot
  std::deque<SlotIndex> wanted;   // by acquire; read before
  std::deque<SlotIndex> hinted;   // what hints asked for
  std::vector<LayerStatistics> layers;
  size_t n_leases = 0;
  bool ending = false;
  std::vector<std::jthread> threads;

  [[nodiscard]] bool mapped() const { return plan.kind == CacheKind::kMapped; }
  [[nodiscard]] Status start_threads(uint32_t n);
  void run_thread(std::span<std::byte> buffer);
  [[nodiscard]] Status load(ExpertKey key, SlotRange slot, std::span<std::byte> buffer) const;
  void finish(SlotIndex slot, const Status& status);

  [[nodiscard]] Status check_ids(uint32_t layer, std::span<const uint32_t> experts) const;
  [[nodiscard]] Status acquire_mapped(Lease& lease, std::span<const uint32_t> experts);
  [[nodiscard]] Status acquire_slots(Lease& lease, std::span<const uint32_t> experts);
  void adopt(Lease& lease, Lease::Entry entry);
  [[nodiscard]] SlotIndex pin_or_take(std::unique_lock<std::mutex>& lock, ExpertKey key);
  [[nodiscard]] SlotIndex take(ExpertKey key);
  void hint_slots(uint32_t layer, std::span<const uint32_t> experts);

  void cancel(SlotIndex slot);
  void cancel_hints_of(uint32_t layer);
  [[nodiscard]] bool cancel_newest_hint(uint32_t size_class);
  [[nodiscard]] bool will_come_free(uint32_t size_class) const;
  void release(Lease& lease);
};

ExpertStore::Impl::~Impl() {
  {
    const std::scoped_lock lock(mutex);
    check(n_leases == 0, "ExpertStore: destroyed before a lease");
    ending = true;
  }
  work.notify_all();
  threads.clear();  // joins
}

Status ExpertStore::Impl::start_threads(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    Result<AlignedBuffer> buffer =
        AlignedBuffer::create(std::max<size_t>(reader.staging_bytes(), 1), kDirectAlignment);
    if (!buffer) return fail(std::move(buffer.error()).with("experts: staging for reads"));
    staging.push_back(*std::move(buffer));
  }
  for (AlignedBuffer& buffer : staging) {
    try {
      threads.emplace_back([this, bytes = buffer.bytes()] { run_thread(bytes); });
    } catch (const std::system_error& refused) {
      // Fewer threads read more slowly, but one is enough.
      if (threads.empty()) return fail("experts: cannot start a thread: {}", refused.what());
      break;
    }
  }
  return {};
}

void ExpertStore::Impl::run_thread(std::span<std::byte> buffer) {
  std::unique_lock lock(mutex);
  while (true) {
    work.wait(lock, [this] { return ending || !wanted.empty() || !hinted.empty(); });
    if (ending) return;
    std::deque<SlotIndex>& queue = wanted.empty() ? hinted : wanted;
    const SlotIndex slot = queue.front();
    queue.pop_front();
    contents[slot].state = State::kReading;
    const ExpertKey key = table.key(slot);
    const SlotRange range = table.range(slot);
    lock.unlock();
    const Status status = load(key, range, buffer);
    lock.lock();
    finish(slot, status);
  }
}

Status ExpertStore::Impl::load(ExpertKey key, SlotRange slot, std::span<std::byte> buffer) const {
  const Result<ExpertBytes> bytes = reader.read(key, buffer);
  if (!bytes) return fail(bytes.error());
  Status packed = pack({.key = key, .parts = *bytes, .slot = slot});
  if (packed) return packed;
  return fail(
      std::move(packed.error())
          .with(fmt::format("experts: cannot pack layer {}, expert {}", key.layer, key.expert)));
}

void ExpertStore::Impl::finish(SlotIndex slot, const Status& status) {
  const ExpertKey key = table.key(slot);
  Content& content = contents[slot];
  if (status) {
    content.state = State::kReady;
    layers[key.layer].bytes_read += source.file_bytes(key.layer);
  } else {
    content.state = State::kFailed;
    content.error = status.error().message;
    ++layers[key.layer].failed_reads;
    table.disown(slot);
  }
  table.unpin(slot);
  finished.notify_all();
}

// Drops a read that has not begun. The slot must be queued, without a lease.
void ExpertStore::Impl::cancel(SlotIndex slot) {
  Content& content = contents[slot];
  const bool was_hint = content.unused_prefetch;
  std::erase(was_hint ? hinted : wanted, slot);
  if (was_hint) ++layers[table.key(slot).layer].prefetch_cancelled;
  content.unused_prefetch = false;
  table.disown(slot);
  table.unpin(slot);
}

void ExpertStore::Impl::cancel_hints_of(uint32_t layer) {
  const std::vector<SlotIndex> queued(hinted.begin(), hinted.end());
  for (const SlotIndex slot : queued) {
    if (table.key(slot).layer == layer) cancel(slot);
  }
}

bool ExpertStore::Impl::cancel_newest_hint(uint32_t size_class) {
  const auto it = std::ranges::find_if(hinted.rbegin(), hinted.rend(), [&](SlotIndex slot) {
    return table.size_class(slot) == size_class;
  });
  if (it == hinted.rend()) return false;
  cancel(*it);
  return true;
}

// Whether a read that no lease waits for will leave its slot without pins.
bool ExpertStore::Impl::will_come_free(uint32_t size_class) const {
  for (SlotIndex slot = 0; slot < table.n_slots(); ++slot) {
    const bool reading = contents[slot].state == State::kReading;
    if (table.size_class(slot) == size_class && reading && table.pins(slot) == 1) return true;
  }
  return false;
}

// A slot for an expert that has none, with a pin for its read; kNoSlot if all are pinned.
SlotIndex ExpertStore::Impl::take(ExpertKey key) {
  const std::optional<SlotTable::Taken> taken = table.take(key);
  if (!taken) return kNoSlot;
  Content& content = contents[taken->slot];
  if (taken->evicted && content.unused_prefetch) ++layers[taken->evicted->layer].prefetch_wasted;
  content = {};
  return taken->slot;
}

// The expert's slot with a pin more, queued for reading if it is new; kNoSlot if leases hold all.
SlotIndex ExpertStore::Impl::pin_or_take(std::unique_lock<std::mutex>& lock, ExpertKey key) {
  while (true) {
    if (const SlotIndex slot = table.find(key); slot != kNoSlot) {
      table.pin(slot);
      return slot;
    }
    if (const SlotIndex slot = take(key); slot != kNoSlot) {
      table.pin(slot);
      wanted.push_back(slot);
      work.notify_one();
      return slot;
    }
    const uint32_t size_class = table.size_class_of_layer(key.layer);
    if (cancel_newest_hint(size_class)) continue;
    if (!will_come_free(size_class)) return kNoSlot;
    finished.wait(lock);
  }
}

Status ExpertStore::Impl::check_ids(uint32_t layer, std::span<const uint32_t> experts) const {
  if (layer >= source.n_layers()) {
    return fail("experts: layer {} asked for, there are {}", layer, source.n_layers());
  }
  for (const uint32_t expert : experts) {
    if (expert < source.n_experts(layer)) continue;
    return fail("experts: expert {} asked for, layer {} has {}", expert, layer,
                source.n_experts(layer));
  }
  const size_t capacity = table.capacity(layer);
  if (mapped() || experts.size() <= capacity) return {};
  if (const size_t n = count_different(experts); n > capacity) {
    return fail(
        "experts: {} experts of layer {} asked for at once, the cache has {} slots for them", n,
        layer, capacity);
  }
  return {};
}

Status ExpertStore::Impl::acquire_mapped(Lease& lease, std::span<const uint32_t> experts) {
  for (const uint32_t expert : experts) {
    if (auto present = reader.check_present({lease.layer_, expert}); !present) return present;
  }
  for (size_t i = experts.size(); i-- > 0;) {
    lease.ready_.push_back({.index = i, .expert = experts[i]});
  }
  const std::scoped_lock lock(mutex);
  layers[lease.layer_].hits += experts.size();
  return {};
}

// Counts an expert whose slot the lease has just pinned, and puts it where next() looks.
void ExpertStore::Impl::adopt(Lease& lease, Lease::Entry entry) {
  LayerStatistics& counts = layers[lease.layer_];
  Content& content = contents[entry.slot];
  const bool ready = content.state == State::kReady;
  if (content.unused_prefetch) {
    ++(ready ? counts.prefetch_hits : counts.prefetch_late);
    if (content.state == State::kQueued) {
      std::erase(hinted, entry.slot);
      wanted.push_back(entry.slot);
    }
    content.unused_prefetch = false;
  }
  entry.joined = content.state == State::kReading;
  ++(ready ? counts.hits : counts.misses);
  (ready ? lease.ready_ : lease.waiting_).push_back(entry);
  lease.pinned_[entry.index] = entry.slot;
}

Status ExpertStore::Impl::acquire_slots(Lease& lease, std::span<const uint32_t> experts) {
  lease.pinned_.assign(experts.size(), kNoSlot);
  std::unique_lock lock(mutex);
  // Everything that is here gets its pin before a victim is chosen for anything that is not.
  for (size_t i = 0; i < experts.size(); ++i) {
    const SlotIndex slot = table.find({lease.layer_, experts[i]});
    if (slot == kNoSlot) continue;
    table.pin(slot);
    adopt(lease, {.index = i, .expert = experts[i], .slot = slot});
  }
  cancel_hints_of(lease.layer_);
  for (size_t i = 0; i < experts.size(); ++i) {
    if (lease.pinned_[i] != kNoSlot) continue;
    const SlotIndex slot = pin_or_take(lock, {lease.layer_, experts[i]});
    if (slot == kNoSlot) {
      return fail("experts: no slot for expert {} of layer {}: other requests hold all {}",
                  experts[i], lease.layer_, table.capacity(lease.layer_));
    }
    adopt(lease, {.index = i, .expert = experts[i], .slot = slot});
  }
  std::ranges::reverse(lease.ready_);  // next() takes from the back
  return {};
}

void ExpertStore::Impl::hint_slots(uint32_t layer, std::span<const uint32_t> experts) {
  const std::scoped_lock lock(mutex);
  // What is here already must not be the victim of the others.
  std::vector<SlotIndex> kept;
  for (const uint32_t expert : experts) {
    const SlotIndex slot = table.find({layer, expert});
    if (slot == kNoSlot) continue;
    table.pin(slot);
    kept.push_back(slot);
  }
  for (const uint32_t expert : experts) {
    if (table.find({layer, expert}) != kNoSlot) continue;
    const SlotIndex slot = take({layer, expert});
    if (slot == kNoSlot) break;
    contents[slot].unused_prefetch = true;
    hinted.push_back(slot);
    ++layers[layer].prefetches;
    work.notify_one();
  }
  for (const SlotIndex slot : kept) table.unpin(slot);
}

void ExpertStore::Impl::release(Lease& lease) {
  const std::scoped_lock lock(mutex);
  for (const SlotIndex slot : lease.pinned_) {
    if (slot == kNoSlot) continue;
    table.unpin(slot);
    if (contents[slot].state == State::kQueued && table.pins(slot) == 1) cancel(slot);
  }
  --n_leases;
  finished.notify_all();
}

Result<ExpertStore> ExpertStore::create(const ExpertSource& source, SlotPlan plan,
                                        PackFunction pack, const StoreOptions& options) {
  if (plan.class_of_layer.size() != source.n_layers()) {
    return fail("experts: a plan of {} layers for a file of {}", plan.class_of_layer.size(),
                source.n_layers());
  }
  check(pack || plan.kind == CacheKind::kMapped, "ExpertStore: slots need a pack function");
  Result<SliceReader> reader = SliceReader::open(source, options.read_mode, options.read);
  if (!reader) return fail(std::move(reader.error()));
  const uint32_t n_threads =
      plan.kind == CacheKind::kMapped ? 0 : std::clamp(options.n_read_threads, 1u, kMaxReadThreads);
  auto impl = std::make_unique<Impl>(source, std::move(plan), std::move(pack), *std::move(reader));
  if (auto started = impl->start_threads(n_threads); !started) {
    return fail(std::move(started.error()));
  }
  return ExpertStore(std::move(impl));
}

ExpertStore::ExpertStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExpertStore::ExpertStore(ExpertStore&&) noexcept = default;
ExpertStore::~ExpertStore() = default;

Result<Lease> ExpertStore::acquire(uint32_t layer, std::span<const uint32_t> experts) {
  if (auto known = impl_->check_ids(layer, experts); !known) return fail(std::move(known.error()));
  {
    const std::scoped_lock lock(impl_->mutex);
    ++impl_->n_leases;
  }
  Lease lease(impl_.get(), layer);
  const Status acquired = impl_->mapped() ? impl_->acquire_mapped(lease, experts)
                                          : impl_->acquire_slots(lease, experts);
  if (!acquired) return fail(acquired.error());
  return lease;
}

uint32_t ExpertStore::capacity(uint32_t layer) const {
  return impl_->mapped() ? impl_->source.n_experts(layer) : impl_->table.capacity(layer);
}

void ExpertStore::sort_residents_first(uint32_t layer, std::span<uint32_t> experts) const {
  if (impl_->mapped() || layer >= impl_->source.n_layers()) return;
  const std::scoped_lock lock(impl_->mutex);
  std::ranges::stable_partition(experts, [&](uint32_t expert) {
    return impl_->source.has({layer, expert}) && impl_->table.find({layer, expert}) != kNoSlot;
  });
}

void ExpertStore::hint(uint32_t layer, std::span<const uint32_t> experts) {
  if (layer >= impl_->source.n_layers()) return;
  std::vector<uint32_t> known;
  for (const uint32_t expert : experts) {
    if (expert < impl_->source.n_experts(layer)) known.push_back(expert);
  }
  if (!impl_->mapped()) {
    impl_->hint_slots(layer, known);
    return;
  }
  for (const uint32_t expert : known) {
    for (const std::span<const std::byte> part : impl_->source.mapped({layer, expert})) {
      will_need(part);
    }
  }
}

Status ExpertStore::preload() {
  if (impl_->plan.kind != CacheKind::kFull) return {};
  for (uint32_t layer = 0; layer < impl_->source.n_layers(); ++layer) {
    const uint32_t n_experts = impl_->source.n_experts(layer);
    for (uint32_t first = 0; first < n_experts; first += kPreloadGroup) {
      std::vector<uint32_t> group;
      for (uint32_t e = first; e < std::min(n_experts, first + kPreloadGroup); ++e) {
        group.push_back(e);
      }
      Result<Lease> lease = acquire(layer, group);
      if (!lease) return fail(std::move(lease.error()));
      while (true) {
        auto ready = lease->next();
        if (!ready) return fail(std::move(ready.error()));
        if (!*ready) break;
      }
    }
  }
  return {};
}

Statistics ExpertStore::statistics() const {
  const std::scoped_lock lock(impl_->mutex);
  uint64_t staging_bytes = 0;
  for (const AlignedBuffer& buffer : impl_->staging) staging_bytes += buffer.size();
  return {.layers = impl_->layers, .slot_bytes = impl_->plan.bytes, .staging_bytes = staging_bytes};
}

Lease::Lease(Lease&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      layer_(other.layer_),
      pinned_(std::move(other.pinned_)),
      ready_(std::move(other.ready_)),
      waiting_(std::move(other.waiting_)) {}

Lease::~Lease() { release(); }

void Lease::release() {
  if (store_ == nullptr) return;
  store_->release(*this);
  store_ = nullptr;
}

Result<std::optional<Resident>> Lease::next() {
  check(store_ != nullptr, "Lease::next: the lease has been released");
  if (ready_.empty() && !waiting_.empty()) {
    if (auto waited = wait(); !waited) return fail(std::move(waited.error()));
  }
  if (ready_.empty()) return std::nullopt;
  const Entry entry = ready_.back();
  ready_.pop_back();
  if (entry.slot == kNoSlot) {
    return Resident{
        .index = entry.index, .slot = {}, .mapped = store_->source.mapped({layer_, entry.expert})};
  }
  // The range of a slot never changes, and this one is pinned: no lock.
  return Resident{.index = entry.index, .slot = store_->table.range(entry.slot), .mapped = {}};
}

bool Lease::read_again(std::unique_lock<std::mutex>& lock, Entry& entry) {
  store_->table.unpin(entry.slot);
  entry.slot = store_->pin_or_take(lock, {layer_, entry.expert});
  pinned_[entry.index] = entry.slot;
  if (entry.slot == kNoSlot) return false;
  entry.joined = store_->contents[entry.slot].state == State::kReading;
  return true;
}

Status Lease::wait() {
  std::unique_lock lock(store_->mutex);
  const auto state = [this](const Entry& entry) { return store_->contents[entry.slot].state; };
  const auto is_done = [&](const Entry& entry) {
    return state(entry) == State::kReady || state(entry) == State::kFailed;
  };
  while (true) {
    if (std::ranges::none_of(waiting_, is_done)) {
      const Clock::time_point start = Clock::now();
      store_->finished.wait(lock, [&] { return std::ranges::any_of(waiting_, is_done); });
      store_->layers[layer_].stall_us += us_since(start);
    }
    const auto failed = std::ranges::find(waiting_, State::kFailed, state);
    if (failed == waiting_.end()) break;
    const std::string error = store_->contents[failed->slot].error;
    if (failed->joined && read_again(lock, *failed)) continue;
    waiting_.erase(failed);
    return fail("{}", error);
  }
  const auto is_ready = [&](const Entry& entry) { return state(entry) == State::kReady; };
  std::ranges::copy_if(waiting_, std::back_inserter(ready_), is_ready);
  std::erase_if(waiting_, is_ready);
  return {};
}

}  // namespace godwit::experts
