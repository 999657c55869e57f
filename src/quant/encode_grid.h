// The search behind IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S: 256 weights as points of a codebook
// of magnitudes, signs, and a 4-bit scale s per group, weight = +- d * unit * (2 s + 1) *
// magnitude. For a given scale the nearest point is found exactly, over the whole codebook and,
// where the number of negative signs must be even, together with the sign that is turned. Host
// only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/encode_half.h"
#include "quant/encode_kernels.h"

namespace godwit::quant {

enum class GridSigns { kFree, kEven };  // kEven: of each eight weights an even number is negative

struct GridSpec {
  GridPoints grid;
  float lowest_level;  // of all points
  float highest_level;
  size_t group_weights;  // that share a scale: 16 or 32
  float unit;
  GridSigns signs;
  float importance_floor;  // in units of the block's mean square: w = sqrt(floor + x * x)
};

// A codebook [n_points][n_weights] by coordinate, as GridPoints wants it.
template <class Grid>
[[nodiscard]] std::vector<float> levels_by_coordinate(const Grid& grid) {
  std::vector<float> levels;
  for (size_t i = 0; i < std::size(grid.points[0]); ++i) {
    for (const auto& point : grid.points) levels.push_back(static_cast<float>(point[i]));
  }
  return levels;
}

// What a block holds, before it is packed.
struct GridBlock {
  HalfScale d;
  std::array<uint8_t, 16> scales{};   // of the groups
  std::array<uint16_t, 64> points{};  // 32 of eight weights, or 64 of four
  std::array<uint8_t, 32> signs{};    // bit i of byte j: weight 8 j + i is negative
};

// Encodes blocks one after the other; holds the memory that takes (up to half a megabyte), so one
// per thread.
class GridSearch {
 public:
  explicit GridSearch(const GridSpec& spec);

  [[nodiscard]] GridBlock encode(std::span<const float, 256> x);

 private:
  // Costs of a point of the block: arrays over the codebook.
  struct Costs {
    const float* squares;
    const float* products;
    const float* flipped;
  };
  // The points and flips of eight weights at some scale.
  struct Octet {
    std::array<uint16_t, 2> points{};
    int flipped = -1;  // the point of which a sign is turned
    float squares = 0;
    float products = 0;
  };
  // What the points nearest at a scale amount to.
  struct GroupFit {
    float scale = 0;
    float squares = 0;
    float products = 0;
  };
  using Scales = std::array<float, 8>;

  [[nodiscard]] Costs costs(size_t point) const;
  [[nodiscard]] size_t points_per_octet() const { return 8 / spec_.grid.n_weights; }
  [[nodiscard]] size_t octets_per_group() const { return spec_.group_weights / 8; }
  [[nodiscard]] size_t n_groups() const { return 256 / spec_.group_weights; }
  void tabulate(std::span<const float, 256> x);
  void add_octet_costs(size_t octet, std::span<const float> scales, Scales& out) const;
  [[nodiscard]] Scales group_costs(size_t group, std::span<const float> scales) const;
  [[nodiscard]] Octet nearest(size_t octet, float scale) const;
  [[nodiscard]] GroupFit refit(size_t group, float scale) const;
  [[nodiscard]] GroupFit fit_group(size_t group) const;
  [[nodiscard]] float choose_d(std::span<const GroupFit> fits) const;
  double choose_scales(std::span<const GroupFit> fits, GridBlock& block) const;
  [[nodiscard]] float refit_d(const GridBlock& block) const;
  void choose_points(GridBlock& block) const;
  [[nodiscard]] int cheapest_sign(size_t point, size_t codebook_point) const;

  GridSpec spec_;
  std::array<float, 256> magnitudes_{};
  std::array<float, 256> importance_{};
  std::array<uint8_t, 32> signs_{};  // as the weights have them
  std::array<bool, 32> odd_{};       // where one has to be turned
  std::vector<float> table_;         // [points of the block][3][n_points]
};

}  // namespace godwit::quant
