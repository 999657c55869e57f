#include "apps/bench/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace godwit::apps {
namespace {

// The picture, and the frame of the axes within it.
constexpr double kWidth = 900;
constexpr double kHeight = 520;
constexpr double kLeft = 80;
constexpr double kRight = 660;
constexpr double kTop = 50;
constexpr double kBottom = 430;

// Okabe and Ito's colours, which those who see fewer can tell apart.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#000000", "#8c6d31"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML has no other control characters; what is not ASCII may not be UTF-8.
        out +=
            static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
    }
  }
  return out;
}

bool can_show(const PlotAxis& axis, double value) {
  return std::isfinite(value) && (axis.scale == PlotScale::kLinear || value > 0);
}

bool can_show(const Plot& plot, const PlotPoint& point) {
  return can_show(plot.x, point.x) && can_show(plot.y, point.y);
}

// Values to pixels. A range of nothing becomes one around it.
class Scale {
 public:
  Scale(const PlotAxis& axis, double least, double most, double first, double last)
      : logarithmic_(axis.scale == PlotScale::kLogarithmic), first_(first), last_(last) {
    if (logarithmic_) {
      begin_ = std::log10(least) - 0.05;
      end_ = std::log10(most) + 0.05;
    } else {
      begin_ = std::min(least, 0.0);
      end_ = most > begin_ ? begin_ + (most - begin_) * 1.05 : begin_ + 1;
    }
  }

  [[nodiscard]] double pixel(double value) const {
    const double place = logarithmic_ ? std::log10(value) : value;
    return first_ + (place - begin_) / (end_ - begin_) * (last_ - first_);
  }

  [[nodiscard]] std::vector<double> ticks() const {
    return logarithmic_ ? logarithmic_ticks() : linear_ticks();
  }

 private:
  [[nodiscard]] std::vector<double> linear_ticks() const {
    const double rough = (end_ - begin_) / 6;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double digit = rough / power;
    const double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
    std::vector<double> ticks;
    for (double at = std::ceil(begin_ / step); at * step <= end_ && ticks.size() < 20; ++at) {
      ticks.push_back(at * step);
    }
    return ticks;
  }

  // 1, 2 and 5 of each decade; of many decades their beginnings.
  [[nodiscard]] std::vector<double> logarithmic_ticks() const {
    const bool sparse = end_ - begin_ > 3;
    std::vector<double> ticks;
    for (double decade = std::floor(begin_); decade <= end_; ++decade) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double at = decade + std::log10(digit);
        if (at < begin_ || at > end_ || (sparse && digit > 1)) continue;
        ticks.push_back(digit * std::pow(10, decade));
      }
    }
    return ticks;
  }

  bool logarithmic_;
  double first_;
  double last_;
  double begin_ = 0;
  double end_ = 1;
};

struct Scales {
  Scale x;
  Scale y;
};

Scales scales_of(const Plot& plot) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      if (!can_show(plot, point)) continue;
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  if (xs.empty()) xs = ys = {1};
  const auto [x_least, x_most] = std::ranges::minmax(xs);
  const auto [y_least, y_most] = std::ranges::minmax(ys);
  return {.x = Scale(plot.x, x_least, x_most, kLeft, kRight),
          .y = Scale(plot.y, y_least, y_most, kBottom, kTop)};
}

struct TextStyle {
  const char* anchor = "start";
  int size = 13;
  const char* more = "";
};

std::string text_at(double x, double y, const std::string& text, const TextStyle& style) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", x, y,
      style.anchor, style.size, style.more, escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

std::string axes(const Plot& plot, const Scales& scales) {
  std::string out;
  for (const double tick : scales.x.ticks()) {
    const double x = scales.x.pixel(tick);
    out += line_at(x, kTop, x, kBottom, "#e5e5e5");
    out += text_at(x, kBottom + 18, fmt::format("{:.6g}", tick), {.anchor = "middle", .size = 12});
  }
  for (const double tick : scales.y.ticks()) {
    const double y = scales.y.pixel(tick);
    out += line_at(kLeft, y, kRight, y, "#e5e5e5");
    out += text_at(kLeft - 8, y + 4, fmt::format("{:.6g}", tick), {.anchor = "end", .size = 12});
  }
  out += line_at(kLeft, kBottom, kRight, kBottom, "#000000");
  out += line_at(kLeft, kTop, kLeft, kBottom, "#000000");
  out += text_at((kLeft + kRight) / 2, kBottom + 42, plot.x.label, {.anchor = "middle"});
  const std::string turned =
      fmt::format(" transform=\"rotate(-90 22 {:.1f})\"", (kTop + kBottom) / 2);
  out += text_at(22, (kTop + kBottom) / 2, plot.y.label,
                 {.anchor = "middle", .size = 13, .more = turned.c_str()});
  return out;
}

std::string path_of(const Plot& plot, const PlotSeries& series, const Scales& scales,
                    const char* colour) {
  std::string points;
  for (const PlotPoint& point : series.points) {
    if (!can_show(plot, point)) continue;
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", scales.x.pixel(point.x),
                          scales.y.pixel(point.y));
  }
  if (points.empty()) return "";
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n", points,
      colour, series.mark == PlotMark::kLine ? " stroke-dasharray=\"6 4\"" : "");
}

std::string points_of(const Plot& plot, const PlotSeries& series, const Scales& scales,
                      const char* colour) {
  std::string out;
  for (const PlotPoint& point : series.points) {
    if (!can_show(plot, point)) continue;
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{}{}: {:.6g}, "
        "{:.6g}</title></circle>\n",
        scales.x.pixel(point.x), scales.y.pixel(point.y), colour, escaped(series.name),
        point.label.empty() ? "" : ", " + escaped(point.label), point.x, point.y);
  }
  return out;
}

std::string legend_entry(const PlotSeries& series, size_t i, const char* colour) {
  const double y = kTop + 8 + 22 * static_cast<double>(i);
  const double x = kRight + 16;
  std::string out;
  if (series.mark != PlotMark::kPoints) {
    out += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"1.5\"{}/>\n",
        x, y, x + 20, y, colour, series.mark == PlotMark::kLine ? " stroke-dasharray=\"6 4\"" : "");
  }
  if (series.mark != PlotMark::kLine) {
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\" fill=\"{}\"/>\n",
                       x + 6, y - 4, colour);
  }
  return out + text_at(x + 28, y + 4, series.name, {.anchor = "start", .size = 12});
}

}  // namespace

std::string svg_of(const Plot& plot) {
  const Scales scales = scales_of(plot);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  out += text_at(kLeft, 28, plot.title, {.anchor = "start", .size = 16});
  out += axes(plot, scales);
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries& series = plot.series[i];
    const char* const colour = kColours[i % kColours.size()];
    if (series.mark != PlotMark::kPoints) out += path_of(plot, series, scales, colour);
    if (series.mark != PlotMark::kLine) out += points_of(plot, series, scales, colour);
    out += legend_entry(series, i, colour);
  }
  out += text_at(kLeft, kHeight - 16, plot.note, {.anchor = "start", .size = 11});
  return out + "</svg>\n";
}

Status check_plot_path(const std::string& path) {
  if (path.empty()) return {};
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return fail("--plot '{}': expected a file, found a folder", path);
  }
  const std::filesystem::path folder = std::filesystem::absolute(path, unknown).parent_path();
  if (!std::filesystem::is_directory(folder, unknown)) {
    return fail("--plot '{}': there is no folder '{}'", path, folder.string());
  }
  return {};
}

Status write_plot(const std::string& path, const Plot& plot) {
  std::ofstream out(path, std::ios::binary);
  out << svg_of(plot);
  out.close();
  if (!out) return fail("--plot '{}': cannot be written", path);
  return {};
}

}  // namespace godwit::apps
