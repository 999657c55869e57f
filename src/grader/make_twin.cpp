#include "grader/make_twin.h"

namespace godwit::grader {

Result<std::unique_ptr<Twin>> make_twin(const GradedModel& model, TwinPlace place,
                                        uint64_t capacity) {
  if (place == TwinPlace::kHost) return make_host_twin(model, capacity);
  const DeviceRoom room = device_room();
  if (!room.problem.empty()) return fail("twin: {}", room.problem);
  const uint64_t needed = device_twin_bytes(model, capacity);
  if (needed > room.free_bytes) {
    return fail("twin: needs {} MB of device memory, {} MB are free", needed / 1000000,
                room.free_bytes / 1000000);
  }
  return make_unchecked_device_twin(model, capacity);
}

}  // namespace godwit::grader
