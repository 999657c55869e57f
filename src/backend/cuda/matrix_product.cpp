#include "backend/cuda/matrix_product.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <compare>
#include <map>
#include <string>

#include "backend/cuda/device.h"

namespace godwit::cuda {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;
constexpr const char* kLibrary = "libcublasLt.so.13";

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

// The functions of the library, by the types of its header.
struct Functions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
};

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Functions& f) {
  return find(library, "cublasLtCreate", f.create) && find(library, "cublasLtDestroy", f.destroy) &&
         find(library, "cublasLtMatmul", f.matmul) &&
         find(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic) &&
         find(library, "cublasLtMatmulDescCreate", f.desc_create) &&
         find(library, "cublasLtMatmulDescDestroy", f.desc_destroy) &&
         find(library, "cublasLtMatmulDescSetAttribute", f.desc_set) &&
         find(library, "cublasLtMatrixLayoutCreate", f.layout_create) &&
         find(library, "cublasLtMatrixLayoutDestroy", f.layout_destroy) &&
         find(library, "cublasLtMatmulPreferenceCreate", f.preference_create) &&
         find(library, "cublasLtMatmulPreferenceDestroy", f.preference_destroy) &&
         find(library, "cublasLtMatmulPreferenceSetAttribute", f.preference_set);
}

Status status_of_blas(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return fail("cuda: cuBLASLt: {}: status {}", what, static_cast<int>(status));
}

cudaDataType_t data_type(TensorType type) {
  if (type == TensorType::kF16) return CUDA_R_16F;
  return type == TensorType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

struct ShapeKey {
  TensorType type = TensorType::kF32;
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t x_stride = 0;
  uint64_t n_rows = 0;
  uint64_t y_stride = 0;

  friend auto operator<=>(const ShapeKey&, const ShapeKey&) = default;
};

// In the library's column-major words: Y^T [rows, n_rows] = W^T [cols, rows]^T X^T [cols, n_rows].
struct Plan {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t w = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t y = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

class CublasLt final : public MatrixProduct {
 public:
  CublasLt(std::unique_ptr<void, CloseLibrary> library, const Functions& functions,
           cublasLtHandle_t handle, DeviceMemory workspace)
      : library_(std::move(library)),
        f_(functions),
        handle_(handle),
        workspace_(std::move(workspace)) {}

  ~CublasLt() override {
    for (const auto& [key, plan] : plans_) release(plan);
    (void)f_.destroy(handle_);
  }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  Status multiply(const Args& args, cudaStream_t stream) override {
    const Result<const Plan*> plan = plan_for({.type = args.weight.type,
                                               .rows = args.weight.rows,
                                               .cols = args.weight.stride,
                                               .x_stride = args.x_stride,
                                               .n_rows = args.n_rows,
                                               .y_stride = args.y.stride});
    if (!plan) return fail(plan.error());
    const Plan& p = **plan;
    const float one = 1.0f;
    const float beta = args.into == Into::kAdd ? 1.0f : 0.0f;
    return status_of_blas(f_.matmul(handle_, p.desc, &one, args.weight.data, p.w, args.x, p.x,
                                    &beta, args.y.data, p.y, args.y.data, p.y, &p.algorithm,
                                    workspace_.data(), workspace_.size(), stream),
                          "a product");
  }

 private:
  Result<const Plan*> plan_for(const ShapeKey& key) {
    const auto found = plans_.find(key);
    if (found != plans_.end()) return &found->second;
    Plan plan;
    if (Status s = make(key, plan); !s) {
      release(plan);
      return fail(s.error());
    }
    return &plans_.emplace(key, plan).first->second;
  }

  Status make(const ShapeKey& key, Plan& plan) const {
    const cudaDataType_t type = data_type(key.type);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    cublasStatus_t status = f_.desc_create(&plan.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const auto then = [&](cublasStatus_t next) {
      if (status == CUBLAS_STATUS_SUCCESS) status = next;
    };
    if (status != CUBLAS_STATUS_SUCCESS) return status_of_blas(status, "describing a product");
    then(f_.desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    const auto ld = [](uint64_t n) { return static_cast<int64_t>(n); };
    then(f_.layout_create(&plan.w, type, key.cols, key.rows, ld(key.cols)));
    then(f_.layout_create(&plan.x, type, key.cols, key.n_rows, ld(key.x_stride)));
    then(f_.layout_create(&plan.y, CUDA_R_32F, key.rows, key.n_rows, ld(key.y_stride)));
    if (status != CUBLAS_STATUS_SUCCESS) return status_of_blas(status, "describing a product");
    return choose(key, plan);
  }

  Status choose(const ShapeKey& key, Plan& plan) const {
    cublasLtMatmulPreference_t preference = nullptr;
    if (Status s = status_of_blas(f_.preference_create(&preference), "choosing"); !s) return s;
    const uint64_t workspace = kWorkspaceBytes;
    const uint32_t no_partial_sums = CUBLASLT_REDUCTION_SCHEME_NONE;
    (void)f_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                            sizeof workspace);
    (void)f_.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                            &no_partial_sums, sizeof no_partial_sums);
    cublasLtMatmulHeuristicResult_t best = {};
    int n_found = 0;
    const cublasStatus_t status = f_.heuristic(handle_, plan.desc, plan.w, plan.x, plan.y, plan.y,
                                               preference, 1, &best, &n_found);
    (void)f_.preference_destroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || n_found == 0) {
      return fail("cuda: cuBLASLt has no product of {} x {} by {} rows of {}", key.rows, key.cols,
                  key.n_rows, tensor_type_name(key.type));
    }
    plan.algorithm = best.algo;
    return {};
  }

  void release(const Plan& plan) const {
    if (plan.desc != nullptr) (void)f_.desc_destroy(plan.desc);
    for (cublasLtMatrixLayout_t layout : {plan.w, plan.x, plan.y}) {
      if (layout != nullptr) (void)f_.layout_destroy(layout);
    }
  }

  std::unique_ptr<void, CloseLibrary> library_;
  Functions f_;
  cublasLtHandle_t handle_;
  DeviceMemory workspace_;
  std::map<ShapeKey, Plan> plans_;
};

}  // namespace

Result<std::unique_ptr<MatrixProduct>> MatrixProduct::open() {
  std::unique_ptr<void, CloseLibrary> library(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) return fail("{} was not found", kLibrary);
  Functions functions;
  if (!find_all(library.get(), functions)) return fail("{} lacks a function", kLibrary);
  Result<DeviceMemory> workspace = DeviceMemory::allocate(kWorkspaceBytes, "cuBLASLt");
  if (!workspace) return fail(std::move(workspace).error());
  cublasLtHandle_t handle = nullptr;
  if (Status s = status_of_blas(functions.create(&handle), "starting"); !s) return fail(s.error());
  return std::make_unique<CublasLt>(std::move(library), functions, handle, std::move(*workspace));
}

}  // namespace godwit::cuda
