// Packing: file rows into the tiles of tile_layout.h and grid_tiles.h, once, while a model loads. A
// permutation of bits that works dword by dword, so that it keeps up with a fast disk. Called
// through Packing.
#pragma once

#include <cstddef>

namespace godwit::cpu {

// Each packs n_rows file rows of `cols` weights from `src` into div_up(n_rows, 16) row tiles at
// `dst`; the rows missing from the last tile become zeros.
void pack_f32(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_f16(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_bf16(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q4_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q4_1(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q5_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q5_1(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q8_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q4_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q5_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q6_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q2_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q3_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq4_nl(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq4_xs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_tq1_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_tq2_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_mxfp4(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_nvfp4(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q1_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_q2_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq1_s(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq1_m(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq2_xxs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq2_xs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq2_s(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq3_xxs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
void pack_iq3_s(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);

}  // namespace godwit::cpu
