#include "backend/cuda/device.h"

#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

Status status_of(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  return fail("cuda: {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

int n_devices() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return n;
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
  DeviceFacts facts{.index = index,
                    .name = p.name,
                    .major = p.major,
                    .minor = p.minor,
                    .n_multiprocessors = p.multiProcessorCount,
                    .max_shared_bytes = static_cast<int>(p.sharedMemPerBlockOptin),
                    .memory_bytes = total,
                    .free_bytes = free,
                    .l2_bytes = static_cast<uint64_t>(p.l2CacheSize)};
  (void)cudaDriverGetVersion(&facts.driver);
  return facts;
}

Status usable(const DeviceFacts& device) {
  if (find_code() == cudaSuccess) return {};
  (void)cudaGetLastError();
  return fail(
      "cuda: this build has no code for {}, sm_{}; configure with -DGODWIT_CUDA_ARCHITECTURES={}",
      device.name, device.capability(), device.capability());
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

}  // namespace godwit::cuda
