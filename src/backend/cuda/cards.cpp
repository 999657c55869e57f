#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device.h"

namespace godwit::cuda {

Result<std::vector<Card>> cards() {
  const Result<int> n = count_devices();
  if (!n) return fail(n.error());
  std::vector<Card> out;
  for (int i = 0; i < *n; ++i) {
    const Result<DeviceFacts> facts = device_facts(i);
    if (!facts) return fail(facts.error());
    const Status use = usable(*facts);
    out.push_back({.name = facts->name,
                   .capability = facts->capability(),
                   .n_multiprocessors = facts->n_multiprocessors,
                   .memory_bytes = facts->memory_bytes,
                   .free_bytes = facts->free_bytes,
                   .note = use ? "" : use.error().message});
  }
  return out;
}

bool built() { return true; }

}  // namespace godwit::cuda
