#include "base/tensor_type.h"

#include <gtest/gtest.h>

namespace godwit {
namespace {

TEST(TensorType, EveryTypeIsFoundByIdAndByNameInAnyCase) {
  for (const TensorGeometry& geometry : kTensorGeometries) {
    EXPECT_EQ(find_tensor_geometry(static_cast<uint32_t>(geometry.type)), &geometry);
    EXPECT_EQ(find_tensor_geometry(geometry.name), &geometry);
  }
  EXPECT_EQ(find_tensor_geometry("q4_k"), &tensor_geometry(TensorType::kQ4_K));
}

TEST(TensorType, RemovedAndUndefinedIdsAreUnknown) {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 1000u}) {
    EXPECT_EQ(find_tensor_geometry(id), nullptr) << id;
  }
}

TEST(TensorType, RowBytesCountsWholeBlocks) {
  EXPECT_EQ(row_bytes(TensorType::kQ4_K, 4096), 16u * 144u);
  EXPECT_EQ(row_bytes(TensorType::kBF16, 4096), 8192u);
}

}  // namespace
}  // namespace godwit
