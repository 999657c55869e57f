#include "backend/cuda/persistent/layout.h"
#include "backend/cuda/persistent/repack.h"

namespace godwit::cuda::persistent {
namespace {

// One thread writes one lane's 16 bytes; where the matrix has no such row or column, zeros.
__global__ void repack_kernel(const __grid_constant__ RepackArgs args) {
  constexpr uint32_t kPiecesPerSlot = kSlotElements / kPieceElements;
  const uint64_t pieces = packed_elements(args.shape) / kPieceElements;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pieces;
       i += step) {
    const ChunkPlace at = place_of_slot(args.shape, static_cast<uint32_t>(i / kPiecesPerSlot));
    const uint32_t first = static_cast<uint32_t>(i % kPiecesPerSlot) * kPieceElements;
    const uint32_t row = place_in_slot(first).row;
    const uint16_t* from = nullptr;
    if (args.shape.finish == Finish::kGate) {
      const RepackSource& source = args.sources[row / 4];
      const uint64_t r = static_cast<uint64_t>(at.block) * 4 + row % 4;
      if (r < source.rows) from = source.data + r * source.stride;
    } else {
      uint64_t r = static_cast<uint64_t>(at.block) * kSlotRows + row;
      for (const RepackSource& source : args.sources) {
        if (r < source.rows) {
          from = source.data + r * source.stride;
          break;
        }
        r -= source.rows;
      }
    }
    uint16_t elements[kPieceElements];
    for (uint32_t e = 0; e < kPieceElements; ++e) {
      const uint32_t column = at.chunk * kSlotColumns + place_in_slot(first + e).column;
      elements[e] = from != nullptr && column < args.shape.cols ? from[column] : uint16_t{0};
    }
    uint4 bits;
    memcpy(&bits, elements, sizeof(bits));
    reinterpret_cast<uint4*>(args.packed)[i] = bits;
  }
}

}  // namespace

cudaError_t repack(const RepackArgs& args, cudaStream_t stream) {
  repack_kernel<<<2048, 256, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace godwit::cuda::persistent
