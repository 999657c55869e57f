// The CUDA runtime as values: what a card is, and RAII for its memory, streams, events and graphs.
// Errors of the runtime become a Status that names the call. Nothing here knows what is computed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "base/result.h"

namespace godwit::cuda {

// Empty, or "cuda: <what>: <the runtime's words>".
[[nodiscard]] Status status_of(cudaError_t error, std::string_view what);

struct DeviceFacts {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int n_multiprocessors = 0;
  int max_shared_bytes = 0;  // of one block, when asked for
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;  // when asked
  uint64_t l2_bytes = 0;

  [[nodiscard]] int capability() const { return major * 10 + minor; }
};

// Makes the card the calling thread's. Errors: no driver, no such card.
[[nodiscard]] Result<DeviceFacts> device_facts(int index);
// GB/s (10^9) of reads that the card reaches over a buffer far larger than its cache: the best of a
// few passes. Errors: memory.
[[nodiscard]] Result<double> measure_bandwidth_gbps(cudaStream_t stream);

// Empty, or why this build cannot use the card.
[[nodiscard]] Status usable(const DeviceFacts& device);
// Cards that the driver offers, one at least. Errors: no driver, one too old, no card.
[[nodiscard]] Result<int> count_devices();

namespace detail {
struct FreeDevice {
  void operator()(std::byte* p) const { (void)cudaFree(p); }
};
struct FreePinned {
  void operator()(std::byte* p) const { (void)cudaFreeHost(p); }
};
struct DestroyStream {
  void operator()(cudaStream_t s) const { (void)cudaStreamDestroy(s); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t e) const { (void)cudaEventDestroy(e); }
};
struct DestroyGraph {
  void operator()(cudaGraph_t g) const { (void)cudaGraphDestroy(g); }
};
struct DestroyGraphExec {
  void operator()(cudaGraphExec_t g) const { (void)cudaGraphExecDestroy(g); }
};
}  // namespace detail

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, detail::DestroyStream>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, detail::DestroyEvent>;
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, detail::DestroyGraph>;
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, detail::DestroyGraphExec>;

[[nodiscard]] Result<Stream> make_stream();
[[nodiscard]] Result<Event> make_event();

// Device memory, 256-byte aligned, not initialised. Moving keeps the address.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // `what` names it in the error.
  [[nodiscard]] static Result<DeviceMemory> allocate(uint64_t bytes, std::string_view what);
  // Allocated and filled with zeros.
  [[nodiscard]] static Result<DeviceMemory> zeroed(uint64_t bytes, std::string_view what);

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] uint64_t size() const { return size_; }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  std::unique_ptr<std::byte, detail::FreeDevice> memory_;
  uint64_t size_ = 0;
};

// Host memory that copies reach without staging.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  [[nodiscard]] static Result<PinnedMemory> allocate(uint64_t bytes, std::string_view what);

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] uint64_t size() const { return size_; }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  std::unique_ptr<std::byte, detail::FreePinned> memory_;
  uint64_t size_ = 0;
};

}  // namespace godwit::cuda
