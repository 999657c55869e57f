#include <cuda_runtime.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/check.h"
#include "grader/twin.h"
#include "grader/twin_run.h"

namespace godwit::grader {
namespace {

constexpr unsigned kThreads = 128;

template <class Loop>
__global__ void each_element(uint64_t n, Loop loop) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) loop(i);
}

// A failure here is the device's, and every result after it would be wrong.
void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    check(false, std::string(what) + ": " + cudaGetErrorString(status));
  }
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(uint64_t n) : size_(n) {
    if (n != 0) require(cudaMalloc(&data_, n * sizeof(T)), "twin: device memory");
  }
  DeviceArray(DeviceArray&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  // const like std::vector's would be wrong here: device memory is nobody's on the host.
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

// Everything on the default stream: in order, and complete when a copy to the host returns.
struct DeviceMemory {
  template <class T>
  using Array = DeviceArray<T>;

  template <class T>
  [[nodiscard]] Array<T> make(uint64_t n) {
    return Array<T>(n);
  }
  template <class Loop>
  void each(uint64_t n, const Loop& loop) const {
    if (n == 0) return;
    const uint64_t blocks = (n + kThreads - 1) / kThreads;
    each_element<<<static_cast<unsigned>(blocks), kThreads>>>(n, loop);
    require(cudaGetLastError(), "twin: launch");
  }
  template <class T>
  void to_host(std::span<T> out, const T* in) const {
    require(cudaMemcpy(out.data(), in, out.size_bytes(), cudaMemcpyDeviceToHost), "twin: copy");
  }
  template <class T>
  void from_host(std::span<const T> in, T* out) const {
    require(cudaMemcpy(out, in.data(), in.size_bytes(), cudaMemcpyHostToDevice), "twin: copy");
  }
};

}  // namespace

DeviceRoom device_room() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  const cudaError_t status = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (status != cudaSuccess) {
    return {.free_bytes = 0,
            .problem = std::string("no CUDA device answers: ") + cudaGetErrorString(status)};
  }
  return {.free_bytes = free_bytes, .problem = {}};
}

uint64_t device_twin_bytes(const GradedModel& model, uint64_t capacity) {
  uint64_t bytes = uint64_t{1} << 30;
  for (const GradedTensor& t : model.tensors) bytes += 4 * t.numbers();
  return bytes + capacity * (2 * model.shape.position_numbers() + 16 * model.shape.n_heads);
}

std::unique_ptr<Twin> make_unchecked_device_twin(const GradedModel& model, uint64_t capacity) {
  return std::make_unique<TwinOf<DeviceMemory>>(DeviceMemory{}, model, capacity);
}

}  // namespace godwit::grader
