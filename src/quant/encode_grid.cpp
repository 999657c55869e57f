#include "quant/encode_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "quant/encode_importance.h"
#include "quant/encode_levels.h"
#include "quant/encode_select.h"

namespace godwit::quant {
namespace {

constexpr size_t kOctets = 32;

// Index of the smallest of the first n.
size_t least_of(std::span<const float> values) {
  return static_cast<size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

// s for a scale in units of d * unit.
int nearest_scale(float steps) {
  const float s = nearest_whole(0.5f * (std::min(std::max(steps, 1.0f), 31.0f) - 1.0f));
  return static_cast<int>(s);
}

}  // namespace

GridSearch::GridSearch(const GridSpec& spec)
    : spec_(spec), table_(256 / spec.grid.n_weights * 3 * spec.grid.n_points) {}

GridSearch::Costs GridSearch::costs(size_t point) const {
  const size_t n = spec_.grid.n_points;
  const float* squares = table_.data() + point * 3 * n;
  return {.squares = squares, .products = squares + n, .flipped = squares + 2 * n};
}

// Magnitudes, signs and importances, and what every point of the codebook would cost every point
// of the block.
void GridSearch::tabulate(std::span<const float, 256> x) {
  importance_ = floored_magnitudes(x, spec_.importance_floor);
  for (size_t i = 0; i < x.size(); ++i) magnitudes_[i] = std::fabs(x[i]);
  for (size_t octet = 0; octet < kOctets; ++octet) {
    unsigned signs = 0;
    for (size_t i = 0; i < 8; ++i) signs |= (x[8 * octet + i] < 0 ? 1u : 0u) << i;
    signs_[octet] = static_cast<uint8_t>(signs);
    odd_[octet] = spec_.signs == GridSigns::kEven && std::popcount(signs) % 2 != 0;
  }
  const size_t n = spec_.grid.n_points;
  for (size_t point = 0; point < 256 / spec_.grid.n_weights; ++point) {
    const size_t first = point * spec_.grid.n_weights;
    float* squares = table_.data() + point * 3 * n;
    float* flipped = odd_[first / 8] ? squares + 2 * n : nullptr;
    encode_kernels().grid_sums(spec_.grid, magnitudes_.data() + first, importance_.data() + first,
                               squares, squares + n, flipped);
  }
}

void GridSearch::add_octet_costs(size_t octet, std::span<const float> scales, Scales& out) const {
  const EncodeKernels& kernels = encode_kernels();
  const size_t n = spec_.grid.n_points;
  const size_t n_parts = points_per_octet();
  std::array<Scales, 2> kept{};
  std::array<Scales, 2> turned{};
  for (size_t part = 0; part < n_parts; ++part) {
    const Costs cost = costs(octet * n_parts + part);
    kernels.grid_minima(cost.squares, cost.products, n, scales.data(), scales.size(),
                        kept[part].data());
    if (!odd_[octet]) continue;
    kernels.grid_minima(cost.squares, cost.flipped, n, scales.data(), scales.size(),
                        turned[part].data());
  }
  for (size_t k = 0; k < scales.size(); ++k) {
    if (!odd_[octet]) {
      out[k] += kept[0][k] + kept[1][k];
    } else if (n_parts == 1) {
      out[k] += turned[0][k];
    } else {
      out[k] += std::min(turned[0][k] + kept[1][k], kept[0][k] + turned[1][k]);
    }
  }
}

// What the group costs at each of up to eight scales, less a constant.
GridSearch::Scales GridSearch::group_costs(size_t group, std::span<const float> scales) const {
  Scales out{};
  for (size_t i = 0; i < octets_per_group(); ++i) {
    add_octet_costs(group * octets_per_group() + i, scales, out);
  }
  return out;
}

GridSearch::Octet GridSearch::nearest(size_t octet, float scale) const {
  const EncodeKernels& kernels = encode_kernels();
  const size_t n_parts = points_per_octet();
  const auto cost_at = [&](const float* squares, const float* products, size_t p) {
    return scale * squares[p] - 2 * products[p];
  };
  Octet best;
  float best_cost = 0;
  const int last_flip = odd_[octet] ? static_cast<int>(n_parts) - 1 : -1;
  for (int flip = odd_[octet] ? 0 : -1; flip <= last_flip; ++flip) {
    Octet candidate{.points = {}, .flipped = flip};
    float cost = 0;
    for (size_t part = 0; part < n_parts; ++part) {
      const Costs table = costs(octet * n_parts + part);
      const float* products = static_cast<int>(part) == flip ? table.flipped : table.products;
      const size_t p = kernels.grid_nearest(table.squares, products, spec_.grid.n_points, scale);
      candidate.points[part] = static_cast<uint16_t>(p);
      candidate.squares += table.squares[p];
      candidate.products += products[p];
      cost += cost_at(table.squares, products, p);
    }
    if (flip <= 0 || cost < best_cost) {
      best = candidate;
      best_cost = cost;
    }
  }
  return best;
}

// The points nearest at `scale`, and the best scale for them.
GridSearch::GroupFit GridSearch::refit(size_t group, float scale) const {
  GroupFit fit;
  for (size_t i = 0; i < octets_per_group(); ++i) {
    const Octet octet = nearest(group * octets_per_group() + i, scale);
    fit.squares += octet.squares;
    fit.products += octet.products;
  }
  fit.scale = fit.squares > 0 ? std::max(fit.products / fit.squares, 0.0f) : 0.0f;
  return fit;
}

GridSearch::GroupFit GridSearch::fit_group(size_t group) const {
  const auto magnitudes =
      std::span(magnitudes_).subspan(group * spec_.group_weights, spec_.group_weights);
  const float largest = *std::max_element(magnitudes.begin(), magnitudes.end());
  if (!(largest > 0)) return {};
  // The largest weight near the highest level, or a little beyond it, or, where all weights are
  // alike, at the lowest; then around the best of these.
  Scales scales{};
  for (size_t k = 0; k < scales.size(); ++k) {
    scales[k] = largest / spec_.highest_level * (0.46f + 0.1f * static_cast<float>(k));
  }
  scales.back() = largest / spec_.lowest_level;
  float scale = scales[least_of(group_costs(group, scales))];
  for (size_t k = 0; k < scales.size(); ++k) {
    scales[k] = scale * (0.88f + 0.035f * static_cast<float>(k));
  }
  scale = scales[least_of(group_costs(group, scales))];
  return refit(group, scale);
}

// The d at which whole-number scales come nearest to the groups' own, by what that costs with the
// present points.
float GridSearch::choose_d(std::span<const GroupFit> fits) const {
  float largest = 0;
  for (const GroupFit& fit : fits) largest = std::max(largest, fit.scale);
  float best_d = 0;
  double best_cost = -1;
  for (int i = 0; i < 24; ++i) {
    const float d = largest / (spec_.unit * (33.0f - 0.5f * static_cast<float>(i)));
    if (!(d > 0)) return 0;
    double cost = 0;
    for (const GroupFit& fit : fits) {
      const int s = nearest_scale(fit.scale / (d * spec_.unit));
      const float away = fit.scale - d * spec_.unit * static_cast<float>(2 * s + 1);
      cost += static_cast<double>(fit.squares * away * away);
    }
    if (best_cost >= 0 && cost >= best_cost) continue;
    best_cost = cost;
    best_d = d;
  }
  return best_d;
}

// The scales around the groups' own that cost least with d; returns the cost.
double GridSearch::choose_scales(std::span<const GroupFit> fits, GridBlock& block) const {
  double cost = 0;
  for (size_t group = 0; group < n_groups(); ++group) {
    const float step = block.d.value * spec_.unit;
    const int s = step > 0 ? nearest_scale(fits[group].scale / step) : 0;
    std::array<int, 3> around{};
    std::array<float, 3> scales{};
    for (int k = 0; k < 3; ++k) {
      const auto lane = static_cast<size_t>(k);
      around[lane] = std::clamp(s + k - 1, 0, 15);
      scales[lane] = step * static_cast<float>(2 * around[lane] + 1);
    }
    const Scales found = group_costs(group, scales);
    const size_t best = least_of(std::span(found).first<3>());
    block.scales[group] = static_cast<uint8_t>(around[best]);
    cost += static_cast<double>(found[best]);
  }
  return cost;
}

// The best d for the points that the present one leads to.
float GridSearch::refit_d(const GridBlock& block) const {
  double squares = 0;
  double products = 0;
  for (size_t group = 0; group < n_groups(); ++group) {
    const float steps = spec_.unit * static_cast<float>(2 * block.scales[group] + 1);
    const GroupFit fit = refit(group, block.d.value * steps);
    squares += static_cast<double>(steps * steps * fit.squares);
    products += static_cast<double>(steps * fit.products);
  }
  return squares > 0 && products > 0 ? static_cast<float>(products / squares) : 0.0f;
}

int GridSearch::cheapest_sign(size_t point, size_t codebook_point) const {
  const GridPoints& grid = spec_.grid;
  std::array<float, 8> terms{};
  for (size_t i = 0; i < grid.n_weights; ++i) {
    const size_t at = point * grid.n_weights + i;
    terms[i] = importance_[at] * magnitudes_[at] * grid.levels[i * grid.n_points + codebook_point];
  }
  return static_cast<int>(least_of(std::span(terms).first(grid.n_weights)));
}

void GridSearch::choose_points(GridBlock& block) const {
  const size_t n_parts = points_per_octet();
  for (size_t octet = 0; octet < kOctets; ++octet) {
    const uint8_t s = block.scales[octet / octets_per_group()];
    const float scale = block.d.value * spec_.unit * static_cast<float>(2 * s + 1);
    const Octet found = nearest(octet, scale);
    block.signs[octet] = signs_[octet];
    for (size_t part = 0; part < n_parts; ++part) {
      const size_t point = octet * n_parts + part;
      block.points[point] = found.points[part];
      if (static_cast<int>(part) != found.flipped) continue;
      const int sign = cheapest_sign(point, found.points[part]) + static_cast<int>(4 * part);
      block.signs[octet] = static_cast<uint8_t>(block.signs[octet] ^ (1u << sign));
    }
  }
}

GridBlock GridSearch::encode(std::span<const float, 256> x) {
  tabulate(x);
  std::array<GroupFit, 16> storage;
  const auto fits = std::span(storage).first(n_groups());
  for (size_t group = 0; group < fits.size(); ++group) fits[group] = fit_group(group);
  GridBlock best;
  best.d = half_scale(choose_d(fits));
  if (best.d.value <= 0) return GridBlock{};  // nothing but zeros
  double cost = choose_scales(fits, best);
  GridBlock next;
  next.d = half_scale(refit_d(best));
  if (next.d.bits != best.d.bits && next.d.value > 0 && choose_scales(fits, next) < cost) {
    best = next;
  }
  choose_points(best);
  return best;
}

}  // namespace godwit::quant
