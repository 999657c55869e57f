#include "quant/device_decode.h"

#include "quant/block.h"
#include "quant/blocks.h"

namespace godwit::quant {
namespace {

constexpr unsigned kThreads = 128;

// out[b, :] = decode_block(src[b]). One thread per block of weights, grid-stride; no shared memory;
// the block lies in local memory, which is slow and does not matter here. Exact: the host's
// function, whose result does not depend on fma (see the headers).
template <class Block>
__global__ void __launch_bounds__(kThreads)
    decode_blocks(const std::byte* src, size_t n_blocks, float* out) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t b = size_t{blockIdx.x} * blockDim.x + threadIdx.x; b < n_blocks; b += step) {
    decode_block(load_block<Block>(src + b * sizeof(Block)), out + b * size_t{Block::kWeights});
  }
}

template <class... Blocks>
cudaError_t enqueue_any(BlockList<Blocks...>, TensorType type, const std::byte* src,
                        size_t n_blocks, float* out, cudaStream_t stream) {
  const size_t wanted = (n_blocks + kThreads - 1) / kThreads;
  const auto grid = static_cast<unsigned>(wanted < 4096 ? wanted : 4096);
  const auto enqueue_if = [&]<class Block>() {
    if (Block::kType != type) return false;
    decode_blocks<Block><<<grid, kThreads, 0, stream>>>(src, n_blocks, out);
    return true;
  };
  const bool known = (enqueue_if.template operator()<Blocks>() || ...);
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t enqueue_decode(TensorType type, const std::byte* src, size_t n_blocks, float* out,
                           cudaStream_t stream) {
  if (n_blocks == 0) return cudaSuccess;
  return enqueue_any(AllBlocks{}, type, src, n_blocks, out, stream);
}

}  // namespace godwit::quant
