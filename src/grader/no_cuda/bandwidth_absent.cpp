// Stands in for bandwidth_device.cu in builds without CUDA.
#include "grader/bandwidth.h"

namespace godwit::grader {

Bandwidth measure_device_bandwidth() {
  return {.samples_gbs = {}, .problem = "built without CUDA"};
}

}  // namespace godwit::grader
