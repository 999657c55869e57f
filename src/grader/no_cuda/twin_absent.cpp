// Stands in for twin_device.cu in builds without CUDA.
#include "base/check.h"
#include "grader/twin.h"

namespace godwit::grader {

DeviceRoom device_room() {
  return {.free_bytes = 0, .problem = "built without CUDA (configure with -DGODWIT_CUDA=ON)"};
}

uint64_t device_twin_bytes(const GradedModel&, uint64_t) { return 0; }

std::unique_ptr<Twin> make_unchecked_device_twin(const GradedModel&, uint64_t) {
  check(false, "twin: asked for a device that device_room() says is not there");
  return nullptr;
}

}  // namespace godwit::grader
