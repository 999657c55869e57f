#include <algorithm>

#include "grader/twin.h"
#include "grader/twin_run.h"

namespace godwit::grader {
namespace {

struct HostMemory {
  template <class T>
  using Array = std::vector<T>;

  template <class T>
  [[nodiscard]] Array<T> make(uint64_t n) {
    return Array<T>(n);
  }
  template <class Loop>
  void each(uint64_t n, const Loop& loop) const {
    for (size_t i = 0; i < n; ++i) loop(i);
  }
  template <class T>
  void to_host(std::span<T> out, const T* in) const {
    std::copy_n(in, out.size(), out.data());
  }
  template <class T>
  void from_host(std::span<const T> in, T* out) const {
    std::copy_n(in.data(), in.size(), out);
  }
};

}  // namespace

std::unique_ptr<Twin> make_host_twin(const GradedModel& model, uint64_t capacity) {
  return std::make_unique<TwinOf<HostMemory>>(HostMemory{}, model, capacity);
}

}  // namespace godwit::grader
