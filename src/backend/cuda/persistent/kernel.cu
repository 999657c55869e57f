#include "backend/cuda/persistent/kernel.cuh"

namespace godwit::cuda::persistent {
namespace {

using Kernel = void (*)(TokenArgs);

template <class Half, class KvHalf>
Kernel of_head_dim(const KernelChoice& choice) {
  if (choice.head_dim == 128) return token_kernel<Half, KvHalf, 128, 2>;
  return choice.stage_chunks <= 2 ? token_kernel<Half, KvHalf, 64, 1>
                                  : token_kernel<Half, KvHalf, 64, 2>;
}

template <class Half>
Kernel of_kv(const KernelChoice& choice) {
  return choice.kv_type == TensorType::kBF16 ? of_head_dim<Half, Bf16>(choice)
                                             : of_head_dim<Half, F16>(choice);
}

Kernel kernel_of(const KernelChoice& choice) {
  return choice.weight_type == TensorType::kBF16 ? of_kv<Bf16>(choice) : of_kv<F16>(choice);
}

}  // namespace

cudaError_t launch_token(const KernelChoice& choice, const TokenArgs& args, cudaStream_t stream) {
  const Kernel kernel = kernel_of(choice);
  const int bytes = static_cast<int>(args.shared.total);
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  TokenArgs copy = args;
  void* arguments[] = {&copy};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(choice.n_ctas),
                                     dim3(kThreads), arguments, args.shared.total, stream);
}

}  // namespace godwit::cuda::persistent
