// Points and lines as an SVG picture that a browser shows by itself: two axes, linear or
// logarithmic, ticks, a legend, every point with its numbers as a tooltip. Knows nothing of
// benches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct PlotPoint {
  double x = 0;
  double y = 0;
  std::string label = {};  // shown when pointed at; "": the numbers alone
};

enum class PlotMark : uint8_t {
  kPoints,
  kLinkedPoints,
  kLine,  // without points: a bound, a model
};

struct PlotSeries {
  std::string name;
  PlotMark mark = PlotMark::kPoints;
  std::vector<PlotPoint> points;
};

enum class PlotScale : uint8_t { kLinear, kLogarithmic };

struct PlotAxis {
  std::string label;
  PlotScale scale = PlotScale::kLinear;  // a linear axis begins at 0
};

struct Plot {
  std::string title;
  std::string note;  // small, below: machine, commit
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
};

// A whole document. Points that an axis cannot show (not finite; not positive on a logarithmic one)
// are left out.
[[nodiscard]] std::string svg_of(const Plot& plot);

// Empty, or why a picture could not be written there; asked before anything is measured.
[[nodiscard]] Status check_plot_path(const std::string& path);
[[nodiscard]] Status write_plot(const std::string& path, const Plot& plot);

}  // namespace godwit::apps
