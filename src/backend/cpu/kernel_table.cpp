#include "backend/cpu/kernel_table.h"

#include <algorithm>
#include <array>

#include "backend/cpu/activation_kernels.h"
#include "backend/cpu/grid_tiles.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/tile_layout.h"
#include "base/bits.h"
#include "base/check.h"

namespace godwit::cpu {
namespace {

using enum TensorType;
constexpr ActivationKind kFloat = ActivationKind::kF32;
constexpr ActivationKind kBlock32 = ActivationKind::kQ8Block32;
constexpr ActivationKind kBlock256 = ActivationKind::kQ8Block256;
constexpr Exactness kExact = Exactness::kExact;

// By type; within a type the best first.
constexpr auto kKernels = std::to_array<MatVecKernel>({
    {"f32 avx512vnni", kF32, Isa::kAvx512Vnni, kFloat, kExact, avx512vnni::matvec_f32},
    {"f32 avx2", kF32, Isa::kAvx2, kFloat, kExact, avx2::matvec_f32},
    {"f32 generic", kF32, Isa::kGeneric, kFloat, kExact, generic::matvec_f32},
    {"f16 avx512vnni", kF16, Isa::kAvx512Vnni, kFloat, kExact, avx512vnni::matvec_f16},
    {"f16 avx2", kF16, Isa::kAvx2, kFloat, kExact, avx2::matvec_f16},
    {"f16 generic", kF16, Isa::kGeneric, kFloat, kExact, generic::matvec_f16},
    {"bf16 avx512vnni", kBF16, Isa::kAvx512Vnni, kFloat, kExact, avx512vnni::matvec_bf16},
    {"bf16 avx2", kBF16, Isa::kAvx2, kFloat, kExact, avx2::matvec_bf16},
    {"bf16 generic", kBF16, Isa::kGeneric, kFloat, kExact, generic::matvec_bf16},
    {"q4_0 avx512vnni", kQ4_0, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q4_0},
    {"q4_0 avx2", kQ4_0, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q4_0},
    {"q4_0 generic", kQ4_0, Isa::kGeneric, kBlock32, kExact, generic::matvec_q4_0},
    {"q4_1 avx512vnni", kQ4_1, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q4_1},
    {"q4_1 avx2", kQ4_1, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q4_1},
    {"q4_1 generic", kQ4_1, Isa::kGeneric, kBlock32, kExact, generic::matvec_q4_1},
    {"q5_0 avx512vnni", kQ5_0, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q5_0},
    {"q5_0 avx2", kQ5_0, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q5_0},
    {"q5_0 generic", kQ5_0, Isa::kGeneric, kBlock32, kExact, generic::matvec_q5_0},
    {"q5_1 avx512vnni", kQ5_1, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q5_1},
    {"q5_1 avx2", kQ5_1, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q5_1},
    {"q5_1 generic", kQ5_1, Isa::kGeneric, kBlock32, kExact, generic::matvec_q5_1},
    {"q8_0 avx512vnni", kQ8_0, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q8_0},
    {"q8_0 avx2", kQ8_0, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q8_0},
    {"q8_0 generic", kQ8_0, Isa::kGeneric, kBlock32, kExact, generic::matvec_q8_0},
    {"q4_k avx512vnni", kQ4_K, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_q4_k},
    {"q4_k avx2", kQ4_K, Isa::kAvx2, kBlock256, kExact, avx2::matvec_q4_k},
    {"q4_k generic", kQ4_K, Isa::kGeneric, kBlock256, kExact, generic::matvec_q4_k},
    {"q5_k avx512vnni", kQ5_K, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_q5_k},
    {"q5_k avx2", kQ5_K, Isa::kAvx2, kBlock256, kExact, avx2::matvec_q5_k},
    {"q5_k generic", kQ5_K, Isa::kGeneric, kBlock256, kExact, generic::matvec_q5_k},
    {"q6_k avx512vnni", kQ6_K, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_q6_k},
    {"q6_k avx2", kQ6_K, Isa::kAvx2, kBlock256, kExact, avx2::matvec_q6_k},
    {"q6_k generic", kQ6_K, Isa::kGeneric, kBlock256, kExact, generic::matvec_q6_k},
    {"q2_k avx512vnni", kQ2_K, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_q2_k},
    {"q2_k avx2", kQ2_K, Isa::kAvx2, kBlock256, kExact, avx2::matvec_q2_k},
    {"q2_k generic", kQ2_K, Isa::kGeneric, kBlock256, kExact, generic::matvec_q2_k},
    {"q3_k avx512vnni", kQ3_K, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_q3_k},
    {"q3_k avx2", kQ3_K, Isa::kAvx2, kBlock256, kExact, avx2::matvec_q3_k},
    {"q3_k generic", kQ3_K, Isa::kGeneric, kBlock256, kExact, generic::matvec_q3_k},
    {"iq4_nl avx512vnni", kIQ4_NL, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_iq4_nl},
    {"iq4_nl avx2", kIQ4_NL, Isa::kAvx2, kBlock32, kExact, avx2::matvec_iq4_nl},
    {"iq4_nl generic", kIQ4_NL, Isa::kGeneric, kBlock32, kExact, generic::matvec_iq4_nl},
    {"iq4_xs avx512vnni", kIQ4_XS, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_iq4_xs},
    {"iq4_xs avx2", kIQ4_XS, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq4_xs},
    {"iq4_xs generic", kIQ4_XS, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq4_xs},
    {"tq1_0 avx512vnni", kTQ1_0, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_tq2_0},
    {"tq1_0 avx2", kTQ1_0, Isa::kAvx2, kBlock256, kExact, avx2::matvec_tq2_0},
    {"tq1_0 generic", kTQ1_0, Isa::kGeneric, kBlock256, kExact, generic::matvec_tq2_0},
    {"tq2_0 avx512vnni", kTQ2_0, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_tq2_0},
    {"tq2_0 avx2", kTQ2_0, Isa::kAvx2, kBlock256, kExact, avx2::matvec_tq2_0},
    {"tq2_0 generic", kTQ2_0, Isa::kGeneric, kBlock256, kExact, generic::matvec_tq2_0},
    {"mxfp4 avx512vnni", kMXFP4, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_mxfp4},
    {"mxfp4 avx2", kMXFP4, Isa::kAvx2, kBlock32, kExact, avx2::matvec_mxfp4},
    {"mxfp4 generic", kMXFP4, Isa::kGeneric, kBlock32, kExact, generic::matvec_mxfp4},
    {"nvfp4 avx512vnni", kNVFP4, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_nvfp4},
    {"nvfp4 avx2", kNVFP4, Isa::kAvx2, kBlock32, kExact, avx2::matvec_nvfp4},
    {"nvfp4 generic", kNVFP4, Isa::kGeneric, kBlock32, kExact, generic::matvec_nvfp4},
    {"q1_0 avx512vnni", kQ1_0, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q1_0},
    {"q1_0 avx2", kQ1_0, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q1_0},
    {"q1_0 generic", kQ1_0, Isa::kGeneric, kBlock32, kExact, generic::matvec_q1_0},
    {"q2_0 avx512vnni", kQ2_0, Isa::kAvx512Vnni, kBlock32, kExact, avx512vnni::matvec_q2_0},
    {"q2_0 avx2", kQ2_0, Isa::kAvx2, kBlock32, kExact, avx2::matvec_q2_0},
    {"q2_0 generic", kQ2_0, Isa::kGeneric, kBlock32, kExact, generic::matvec_q2_0},
    {"iq1_s avx512vnni", kIQ1_S, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_iq1_s},
    {"iq1_s avx2", kIQ1_S, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq1_s},
    {"iq1_s generic", kIQ1_S, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq1_s},
    {"iq1_m avx512vnni", kIQ1_M, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_iq1_m},
    {"iq1_m avx2", kIQ1_M, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq1_m},
    {"iq1_m generic", kIQ1_M, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq1_m},
    {"iq2_xxs avx512vnni", kIQ2_XXS, Isa::kAvx512Vnni, kBlock256, kExact,
     avx512vnni::matvec_iq2_xxs},
    {"iq2_xxs avx2", kIQ2_XXS, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq2_xxs},
    {"iq2_xxs generic", kIQ2_XXS, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq2_xxs},
    {"iq2_xs avx512vnni", kIQ2_XS, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_iq2_xs},
    {"iq2_xs avx2", kIQ2_XS, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq2_xs},
    {"iq2_xs generic", kIQ2_XS, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq2_xs},
    {"iq2_s avx512vnni", kIQ2_S, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_iq2_s},
    {"iq2_s avx2", kIQ2_S, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq2_s},
    {"iq2_s generic", kIQ2_S, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq2_s},
    {"iq3_xxs avx512vnni", kIQ3_XXS, Isa::kAvx512Vnni, kBlock256, kExact,
     avx512vnni::matvec_iq3_xxs},
    {"iq3_xxs avx2", kIQ3_XXS, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq3_xxs},
    {"iq3_xxs generic", kIQ3_XXS, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq3_xxs},
    {"iq3_s avx512vnni", kIQ3_S, Isa::kAvx512Vnni, kBlock256, kExact, avx512vnni::matvec_iq3_s},
    {"iq3_s avx2", kIQ3_S, Isa::kAvx2, kBlock256, kExact, avx2::matvec_iq3_s},
    {"iq3_s generic", kIQ3_S, Isa::kGeneric, kBlock256, kExact, generic::matvec_iq3_s},
});

// Packed bytes of a row, from the tile that 16 rows share over `kColumns` columns.
template <size_t kTileBytes, size_t kColumns>
size_t packed_row_bytes(size_t cols) {
  static_assert(kTileBytes % kTileRows == 0);
  return div_up(cols, kColumns) * (kTileBytes / kTileRows);
}

constexpr auto kPackings = std::to_array<Packing>({
    {kF32, packed_row_bytes<kTileBytesF32, 1>, pack_f32},
    {kF16, packed_row_bytes<kTileBytesF16, 1>, pack_f16},
    {kBF16, packed_row_bytes<kTileBytesBF16Pair, 2>, pack_bf16},
    {kQ4_0, packed_row_bytes<sizeof(TileQ4_0), 32>, pack_q4_0},
    {kQ4_1, packed_row_bytes<sizeof(TileQ4_1), 32>, pack_q4_1},
    {kQ5_0, packed_row_bytes<sizeof(TileQ5_0), 32>, pack_q5_0},
    {kQ5_1, packed_row_bytes<sizeof(TileQ5_1), 32>, pack_q5_1},
    {kQ8_0, packed_row_bytes<sizeof(TileQ8_0), 32>, pack_q8_0},
    {kQ4_K, packed_row_bytes<sizeof(TileQ4_K), 256>, pack_q4_k},
    {kQ5_K, packed_row_bytes<sizeof(TileQ5_K), 256>, pack_q5_k},
    {kQ6_K, packed_row_bytes<sizeof(TileQ6_K), 256>, pack_q6_k},
    {kQ2_K, packed_row_bytes<sizeof(TileQ2_K), 256>, pack_q2_k},
    {kQ3_K, packed_row_bytes<sizeof(TileQ3_K), 256>, pack_q3_k},
    {kIQ4_NL, packed_row_bytes<sizeof(TileIQ4_NL), 32>, pack_iq4_nl},
    {kIQ4_XS, packed_row_bytes<sizeof(TileIQ4_XS), 256>, pack_iq4_xs},
    {kTQ1_0, packed_row_bytes<sizeof(TileTQ2_0), 256>, pack_tq1_0},
    {kTQ2_0, packed_row_bytes<sizeof(TileTQ2_0), 256>, pack_tq2_0},
    {kMXFP4, packed_row_bytes<sizeof(TileMXFP4), 32>, pack_mxfp4},
    {kNVFP4, packed_row_bytes<sizeof(TileNVFP4), 64>, pack_nvfp4},
    {kQ1_0, packed_row_bytes<sizeof(TileQ1_0), 128>, pack_q1_0},
    {kQ2_0, packed_row_bytes<sizeof(TileQ2_0), 64>, pack_q2_0},
    {kIQ1_S, packed_row_bytes<sizeof(TileIQ1_S), 256>, pack_iq1_s},
    {kIQ1_M, packed_row_bytes<sizeof(TileIQ1_M), 256>, pack_iq1_m},
    {kIQ2_XXS, packed_row_bytes<sizeof(TileIQ2_XXS), 256>, pack_iq2_xxs},
    {kIQ2_XS, packed_row_bytes<sizeof(TileIQ2_XS), 256>, pack_iq2_xs},
    {kIQ2_S, packed_row_bytes<sizeof(TileIQ2_S), 256>, pack_iq2_s},
    {kIQ3_XXS, packed_row_bytes<sizeof(TileIQ3_XXS), 256>, pack_iq3_xxs},
    {kIQ3_S, packed_row_bytes<sizeof(TileIQ3_S), 256>, pack_iq3_s},
});

}  // namespace

// Measured, not derived: docs/NEGATIVE_RESULTS.md has the others.
const PrefetchAhead prefetch_ahead = processor_name().starts_with("Intel")
                                         ? PrefetchAhead{.near_bytes = 3072, .far_bytes = 16384}
                                         : PrefetchAhead{.near_bytes = 8192, .far_bytes = 0};

std::span<const MatVecKernel> matvec_kernels() { return kKernels; }

const Packing* find_packing(TensorType type) {
  const auto found = std::ranges::find(kPackings, type, &Packing::type);
  return found == kPackings.end() ? nullptr : &*found;
}

const MatVecKernel* find_matvec_kernel(TensorType type, Isa isa) {
  const auto found = std::ranges::find_if(kKernels, [&](const MatVecKernel& kernel) {
    return kernel.type == type && kernel.isa <= isa;
  });
  return found == kKernels.end() ? nullptr : &*found;
}

}  // namespace godwit::cpu
