// The inner loops of the encoders' searches as a plain table of functions, one set per instruction
// set: each evaluates eight candidates at once, one per lane, over the weights of a group in order.
// All sets give the same bits. This header is plain data, for the files compiled for one
// instruction set; encode_select.h chooses.
#pragma once

#include <cstddef>

namespace godwit::quant {

inline constexpr size_t kLanes = 8;

// Weighted sums over a group with codes q: of q * q and of q * x.
struct ScaleLanes {
  float qq[kLanes];
  float qx[kLanes];
};

// Weighted sums over a group with codes q: of q, q * q and q * y.
struct LineLanes {
  float q[kLanes];
  float qq[kLanes];
  float qy[kLanes];
};

// The group that a kernel looks at: weights and importances, [n] each.
struct GroupArgs {
  const float* x;
  const float* w;
  size_t n;
};

// Whole numbers from low to high.
struct UniformRange {
  float low;
  float high;
};

// The points of a codebook, by coordinate: levels[i * n_points + j] is weight i of point j.
// n_points is a multiple of eight.
struct GridPoints {
  const float* levels;
  size_t n_points;
  size_t n_weights;  // of a point
};

struct EncodeKernels {
  // q = the level nearest to inverse[k] * x. Levels are whole numbers, or the 16 of a table
  // [16], rising.
  void (*try_scales)(const GroupArgs& group, UniformRange range, const float* inverse,
                     ScaleLanes& out);
  void (*try_table_scales)(const GroupArgs& group, const float* table, const float* inverse,
                           ScaleLanes& out);
  // out[k] = sum w * (scale[k] * q - x)^2 with q as above; inverse[k] = 1 / scale[k], or 0.
  void (*scale_errors)(const GroupArgs& group, UniformRange range, const float* scale,
                       const float* inverse, float* out);
  void (*table_scale_errors)(const GroupArgs& group, const float* table, const float* scale,
                             const float* inverse, float* out);
  // q = inverse[k] * x + shift[k] to the nearest whole number from 0 to last_code.
  void (*try_lines)(const GroupArgs& group, float last_code, const float* inverse,
                    const float* shift, LineLanes& out);
  // out[k] = sum w * (scale[k] * q + offset[k] - x)^2 with q = (x - offset[k]) * inverse[k], to the
  // nearest whole number as above.
  void (*line_errors)(const GroupArgs& group, float last_code, const float* scale,
                      const float* inverse, const float* offset, float* out);

  // For magnitudes |x| and importances w of one point's weights, and every point p of the grid:
  // squares[p] = sum w * p_i^2, products[p] = sum w * |x_i| * p_i, and flipped[p], the products
  // when the sign that costs least is turned. flipped may be null.
  void (*grid_sums)(const GridPoints& grid, const float* x, const float* w, float* squares,
                    float* products, float* flipped);
  // out[k] = the least scale[k]^2 * squares[p] - 2 * scale[k] * products[p] of all p, k < n_scales.
  void (*grid_minima)(const float* squares, const float* products, size_t n_points,
                      const float* scales, size_t n_scales, float* out);
  // The first p of that minimum.
  size_t (*grid_nearest)(const float* squares, const float* products, size_t n_points, float scale);
};

namespace generic {
extern const EncodeKernels kEncodeKernels;
}
namespace avx2 {
extern const EncodeKernels kEncodeKernels;
}

}  // namespace godwit::quant
