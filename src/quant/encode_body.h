// The functions of encode_kernels.h in terms of eight lanes. Included once by each
// encode_kernels_<isa>.cpp with its own Lanes, so that all compute the same by construction.
// Unnamed namespace, since each is compiled with other flags.
//
// Computes, shapes: encode_kernels.h, per function. Preconditions: none on alignment.
// Bytes moved: a group once per call, from the first-level cache. Work split: none.
// Arithmetic: exact; one operation per lane and weight, no fma, weights in order.
// Reference: GenericLanes.
#pragma once

#include <cstddef>

#include "quant/encode_kernels.h"

namespace godwit::quant {
namespace {

template <class L>
struct EncodeBody {
  // To the nearest whole number, halves to even, for |x| < 2^22: the sum has no bits below 1.
  [[gnu::always_inline]] static L nearest_whole(L x) {
    const L magic = L::splat(0x1.8p23f);
    return (x + magic) - magic;
  }

  struct Uniform {
    L low;
    L high;
    explicit Uniform(UniformRange range) : low(L::splat(range.low)), high(L::splat(range.high)) {}
    [[gnu::always_inline]] L nearest(L x) const {
      return nearest_whole(L::min(L::max(x, low), high));
    }
  };

  // A step up for each midpoint that x has passed.
  struct Table {
    const float* values;
    explicit Table(const float* table) : values(table) {}
    [[gnu::always_inline]] L nearest(L x) const {
      L level = L::splat(values[0]);
      for (int i = 1; i < 16; ++i) {
        const L middle = L::splat(0.5f * (values[i - 1] + values[i]));
        level = level + L::where_greater(x, middle, L::splat(values[i] - values[i - 1]));
      }
      return level;
    }
  };

  template <class Levels>
  [[gnu::always_inline]] static void try_levels(const GroupArgs& group, const Levels& levels,
                                                const float* inverse, ScaleLanes& out) {
    const L by = L::load(inverse);
    L qq = L::splat(0.0f);
    L qx = L::splat(0.0f);
    for (size_t i = 0; i < group.n; ++i) {
      const L x = L::splat(group.x[i]);
      const L q = levels.nearest(by * x);
      const L wq = L::splat(group.w[i]) * q;
      qq = qq + wq * q;
      qx = qx + wq * x;
    }
    qq.store(out.qq);
    qx.store(out.qx);
  }

  template <class Levels>
  [[gnu::always_inline]] static void level_errors(const GroupArgs& group, const Levels& levels,
                                                  const float* scale, const float* inverse,
                                                  float* out) {
    const L times = L::load(scale);
    const L by = L::load(inverse);
    L errors = L::splat(0.0f);
    for (size_t i = 0; i < group.n; ++i) {
      const L x = L::splat(group.x[i]);
      const L difference = times * levels.nearest(by * x) - x;
      errors = errors + L::splat(group.w[i]) * difference * difference;
    }
    errors.store(out);
  }

  static void try_scales(const GroupArgs& group, UniformRange range, const float* inverse,
                         ScaleLanes& out) {
    try_levels(group, Uniform(range), inverse, out);
  }
  static void try_table_scales(const GroupArgs& group, const float* table, const float* inverse,
                               ScaleLanes& out) {
    try_levels(group, Table(table), inverse, out);
  }
  static void scale_errors(const GroupArgs& group, UniformRange range, const float* scale,
                           const float* inverse, float* out) {
    level_errors(group, Uniform(range), scale, inverse, out);
  }
  static void table_scale_errors(const GroupArgs& group, const float* table, const float* scale,
                                 const float* inverse, float* out) {
    level_errors(group, Table(table), scale, inverse, out);
  }

  static void try_lines(const GroupArgs& group, float last_code, const float* inverse,
                        const float* shift, LineLanes& out) {
    const Uniform codes(UniformRange{0.0f, last_code});
    const L by = L::load(inverse);
    const L up = L::load(shift);
    L sum_q = L::splat(0.0f);
    L sum_qq = L::splat(0.0f);
    L sum_qy = L::splat(0.0f);
    for (size_t i = 0; i < group.n; ++i) {
      const L y = L::splat(group.x[i]);
      const L q = codes.nearest(by * y + up);
      const L wq = L::splat(group.w[i]) * q;
      sum_q = sum_q + wq;
      sum_qq = sum_qq + wq * q;
      sum_qy = sum_qy + wq * y;
    }
    sum_q.store(out.q);
    sum_qq.store(out.qq);
    sum_qy.store(out.qy);
  }

  static void line_errors(const GroupArgs& group, float last_code, const float* scale,
                          const float* inverse, const float* offset, float* out) {
    const Uniform codes(UniformRange{0.0f, last_code});
    const L times = L::load(scale);
    const L by = L::load(inverse);
    const L from = L::load(offset);
    L errors = L::splat(0.0f);
    for (size_t i = 0; i < group.n; ++i) {
      const L x = L::splat(group.x[i]) - from;
      const L difference = times * codes.nearest(by * x) - x;
      errors = errors + L::splat(group.w[i]) * difference * difference;
    }
    errors.store(out);
  }

  static void grid_sums(const GridPoints& grid, const float* x, const float* w, float* squares,
                        float* products, float* flipped) {
    for (size_t p = 0; p < grid.n_points; p += kLanes) {
      L square = L::splat(0.0f);
      L product = L::splat(0.0f);
      L least = L::splat(__builtin_huge_valf());
      for (size_t i = 0; i < grid.n_weights; ++i) {
        const L level = L::load(grid.levels + i * grid.n_points + p);
        const L term = L::splat(w[i] * x[i]) * level;
        square = square + L::splat(w[i]) * (level * level);
        product = product + term;
        least = L::min(term, least);
      }
      square.store(squares + p);
      product.store(products + p);
      if (flipped != nullptr) (product - (least + least)).store(flipped + p);
    }
  }

  // Divided by the scale: the order is the same.
  [[gnu::always_inline]] static L grid_cost(const float* squares, const float* products, size_t p,
                                            L scale) {
    const L product = L::load(products + p);
    return scale * L::load(squares + p) - (product + product);
  }

  [[gnu::always_inline]] static float least_cost(const float* squares, const float* products,
                                                 size_t n_points, float scale) {
    const L times = L::splat(scale);
    L least = L::splat(__builtin_huge_valf());
    for (size_t p = 0; p < n_points; p += kLanes) {
      least = L::min(grid_cost(squares, products, p, times), least);
    }
    float lanes[kLanes];
    least.store(lanes);
    for (size_t k = 1; k < kLanes; ++k) lanes[0] = lanes[k] < lanes[0] ? lanes[k] : lanes[0];
    return lanes[0];
  }

  static void grid_minima(const float* squares, const float* products, size_t n_points,
                          const float* scales, size_t n_scales, float* out) {
    for (size_t k = 0; k < n_scales; ++k) {
      out[k] = scales[k] * least_cost(squares, products, n_points, scales[k]);
    }
  }

  static size_t grid_nearest(const float* squares, const float* products, size_t n_points,
                             float scale) {
    const L least = L::splat(least_cost(squares, products, n_points, scale));
    for (size_t p = 0; p < n_points; p += kLanes) {
      const unsigned found = L::equal_mask(grid_cost(squares, products, p, L::splat(scale)), least);
      if (found != 0) return p + static_cast<size_t>(__builtin_ctz(found));
    }
    return 0;
  }

  static constexpr EncodeKernels kTable = {
      .try_scales = try_scales,
      .try_table_scales = try_table_scales,
      .scale_errors = scale_errors,
      .table_scale_errors = table_scale_errors,
      .try_lines = try_lines,
      .line_errors = line_errors,
      .grid_sums = grid_sums,
      .grid_minima = grid_minima,
      .grid_nearest = grid_nearest,
  };
};

}  // namespace
}  // namespace godwit::quant
