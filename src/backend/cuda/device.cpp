#include "backend/cuda/device.h"

#include <algorithm>

#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

Status status_of(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  return fail("cuda: {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

Result<int> count_devices() {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  (void)cudaGetLastError();
  if (error == cudaSuccess && n > 0) return n;
  // A version of CUDA, 13000 for 13.0; 0 where there is no driver, which the runtime reports as one
  // that is too old.
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  if (driver != 0 && error == cudaErrorInsufficientDriver) {
    return fail("cuda: the driver is for CUDA {}.{}, expected 13.0 or later (driver 580)",
                driver / 1000, driver % 1000 / 10);
  }
  if (driver == 0 || error == cudaSuccess || error == cudaErrorNoDevice) {
    return fail("cuda: no NVIDIA card was found; it takes a card and its driver (580 or later)");
  }
  return fail(status_of(error, "looking for cards").error());
}

Result<DeviceFacts> device_facts(int index) {
  if (Status s = status_of(cudaSetDevice(index), "choosing the card"); !s) return fail(s.error());
  cudaDeviceProp p{};
  if (Status s = status_of(cudaGetDeviceProperties(&p, index), "its properties"); !s) {
    return fail(s.error());
  }
  size_t free = 0;
  size_t total = 0;
  if (Status s = status_of(cudaMemGetInfo(&free, &total), "its memory"); !s) return fail(s.error());
  return DeviceFacts{.name = p.name,
                     .major = p.major,
                     .minor = p.minor,
                     .n_multiprocessors = p.multiProcessorCount,
                     .max_shared_bytes = static_cast<int>(p.sharedMemPerBlockOptin),
                     .memory_bytes = total,
                     .free_bytes = free,
                     .l2_bytes = static_cast<uint64_t>(p.l2CacheSize)};
}

Status usable(const DeviceFacts& device) {
  const cudaError_t error = find_code();
  (void)cudaGetLastError();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction) {
    return status_of(error, "looking for its code");
  }
  return fail(
      "cuda: this build has no code for {}, sm_{}; configure with -DGODWIT_CUDA_ARCHITECTURES={}{}",
      device.name, device.capability(), device.capability(), device.capability() == 90 ? "a" : "");
}

Result<Stream> make_stream() {
  cudaStream_t stream = nullptr;
  const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (Status s = status_of(error, "making a stream"); !s) return fail(s.error());
  return Stream(stream);
}

Result<Event> make_event() {
  cudaEvent_t event = nullptr;
  if (Status s = status_of(cudaEventCreate(&event), "making an event"); !s) return fail(s.error());
  return Event(event);
}

Result<DeviceMemory> DeviceMemory::allocate(uint64_t bytes, std::string_view what) {
  DeviceMemory memory;
  void* p = nullptr;
  const uint64_t asked = bytes == 0 ? 1 : bytes;
  if (const cudaError_t error = cudaMalloc(&p, asked); error != cudaSuccess) {
    (void)cudaGetLastError();
    size_t free = 0;
    size_t total = 0;
    (void)cudaMemGetInfo(&free, &total);
    return fail("cuda: {} needs {} bytes, the card has {} of {} free ({})", what, bytes, free,
                total, cudaGetErrorName(error));
  }
  memory.memory_.reset(static_cast<std::byte*>(p));
  memory.size_ = bytes;
  return memory;
}

Result<DeviceMemory> DeviceMemory::zeroed(uint64_t bytes, std::string_view what) {
  Result<DeviceMemory> memory = allocate(bytes, what);
  if (!memory) return memory;
  if (Status s = status_of(cudaMemset(memory->data(), 0, bytes), what); !s) return fail(s.error());
  // Streams of our own do not wait for the default stream.
  if (Status s = status_of(cudaDeviceSynchronize(), what); !s) return fail(s.error());
  return memory;
}

Result<PinnedMemory> PinnedMemory::allocate(uint64_t bytes, std::string_view what) {
  PinnedMemory memory;
  void* p = nullptr;
  const cudaError_t error = cudaMallocHost(&p, bytes == 0 ? 1 : bytes);
  if (Status s = status_of(error, what); !s) return fail(s.error());
  memory.memory_.reset(static_cast<std::byte*>(p));
  memory.size_ = bytes;
  return memory;
}

Result<double> measure_bandwidth_gbps(cudaStream_t stream) {
  constexpr uint64_t kMostBytes = uint64_t{2} << 30;
  constexpr int kPasses = 5;
  size_t free = 0;
  size_t total = 0;
  if (Status s = status_of(cudaMemGetInfo(&free, &total), "its memory"); !s) return fail(s.error());
  const uint64_t bytes = std::min<uint64_t>(kMostBytes, free / 2 >> 20 << 20);
  Result<DeviceMemory> memory = DeviceMemory::zeroed(bytes + 256, "measuring the bandwidth");
  if (!memory) return fail(std::move(memory).error());
  // Not zeros, which a card may read faster than data.
  (void)cudaMemsetAsync(memory->data(), 0x5a, bytes, stream);
  const Result<Event> begin = make_event();
  const Result<Event> end = make_event();
  if (!begin || !end) return fail("cuda: no events to measure the bandwidth with");
  double best = 0;
  for (int i = 0; i < kPasses; ++i) {
    (void)cudaEventRecord(begin->get(), stream);
    const cudaError_t error = enqueue_read(stream, memory->data(), bytes,
                                           reinterpret_cast<uint32_t*>(memory->data() + bytes));
    (void)cudaEventRecord(end->get(), stream);
    if (Status s = status_of(error, "measuring the bandwidth"); !s) return fail(s.error());
    if (Status s = status_of(cudaEventSynchronize(end->get()), "measuring the bandwidth"); !s) {
      return fail(s.error());
    }
    float ms = 0;
    (void)cudaEventElapsedTime(&ms, begin->get(), end->get());
    if (ms > 0) best = std::max(best, static_cast<double>(bytes) / static_cast<double>(ms) * 1e-6);
  }
  return best;
}

}  // namespace godwit::cuda
