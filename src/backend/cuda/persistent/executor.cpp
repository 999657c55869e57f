#include "backend/cuda/persistent/executor.h"

namespace godwit::cuda::persistent {

uint64_t weight_bytes(const program::Program&, const DeviceFacts&) { return 0; }

Result<std::unique_ptr<DecodeExecutor>> load(const LoadSettings&) {
  return fail("the persistent kernel is not part of this build");
}

}  // namespace godwit::cuda::persistent
