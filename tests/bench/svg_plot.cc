#include "tests/bench/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "solvers/viz/markup.h"

namespace stowage {
namespace {

constexpr double kPanelWidth = 460;
constexpr double kPanelHeight = 320;
constexpr double kHeader = 70;  // title and two rows of the legend
constexpr double kLeft = 70;    // of a panel, to its axis
constexpr double kRight = 20;
constexpr double kTop = 34;
constexpr double kBottom = 52;
constexpr size_t kMarkersUpTo = 40;

// Told apart by people who do not see all colours (Okabe & Ito 2008).
constexpr const char* kColours[] = {"#000000", "#d55e00", "#0072b2", "#009e73",
                                    "#cc79a7", "#e69f00", "#56b4e9", "#999999"};

struct Style {
  std::string label;
  const char* colour = kColours[0];
  size_t shape = 0;
  bool crosses = false;  // and no steps
};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Text(double x, double y, const std::string& text, const std::string& attributes = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes,
                         Escape(text));
}

std::string Stroke(double x1, double y1, double x2, double y2, const char* colour) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                         x1, y1, x2, y2, colour);
}

constexpr double kMarkerSize = 3.5;

std::string Cross(double x, double y, const char* colour) {
  constexpr double kAcross = 2 * kMarkerSize;
  return absl::StrFormat(
      "<path d=\"M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f\" stroke=\"%s\" stroke-width=\"1.5\"/>\n",
      x - kMarkerSize, y - kMarkerSize, kAcross, kAcross, -kAcross, -kAcross, kAcross, colour);
}

std::string Marker(double x, double y, const Style& style) {
  constexpr double kAcross = 2 * kMarkerSize;
  switch (style.shape % 3) {
    case 0:
      return absl::StrFormat(
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
          x - kMarkerSize, y - kMarkerSize, kAcross, kAcross, style.colour);
    case 1:
      return absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", x, y,
                             kMarkerSize, style.colour);
    default:
      return absl::StrFormat("<path d=\"M%.1f %.1fl%.1f %.1fh%.1fz\" fill=\"%s\"/>\n", x,
                             y - kMarkerSize, kMarkerSize, kAcross, -kAcross, style.colour);
  }
}

// One per label, in the order in which the panels bring them up.
std::vector<Style> StylesOf(const std::vector<Panel>& panels) {
  std::vector<Style> styles;
  for (const Panel& panel : panels) {
    for (const Series& series : panel.series) {
      const auto known = std::find_if(styles.begin(), styles.end(), [&](const Style& style) {
        return style.label == series.label;
      });
      if (known != styles.end()) continue;
      const size_t index = styles.size();
      const bool crosses = series.steps.empty() && series.line.empty() && !series.crosses.empty();
      styles.push_back({series.label, kColours[index % std::size(kColours)], index, crosses});
    }
  }
  return styles;
}

// At the distances of axes that long, from below `low` to above `high`.
std::vector<double> TicksBetween(double low, double high) {
  const std::vector<double> from_0 = Ticks(std::max(high - low, 0.01 * high), 6);
  const double distance = from_0[1] - from_0[0];
  std::vector<double> ticks = {std::floor(low / distance) * distance};
  do ticks.push_back(ticks.back() + distance);
  while (ticks.back() < high);
  return ticks;
}

class PanelWriter {
 public:
  PanelWriter(const Panel& panel, const std::vector<Style>& styles, double left, double top)
      : panel_(panel), styles_(styles), left_(left), top_(top) {}

  std::string Write() {
    PlotPoint largest;
    double lowest = std::numeric_limits<double>::infinity();
    for (const Series& series : panel_.series) {
      for (const std::vector<PlotPoint>* points : {&series.steps, &series.crosses, &series.line}) {
        for (const PlotPoint& point : *points) {
          if (IsAbove(point)) continue;
          largest = {std::max(largest.x, point.x), std::max(largest.y, point.y)};
          lowest = std::min(lowest, point.y);
        }
      }
    }
    std::string svg = Text(left_ + kPanelWidth / 2, top_ + 20, panel_.title,
                           "text-anchor=\"middle\" font-weight=\"bold\"");
    if (largest.x <= 0 || largest.y <= 0) return svg;
    x_ticks_ = Ticks(largest.x, 6);
    y_ticks_ = panel_.y_from_0 ? Ticks(largest.y, 6) : TicksBetween(lowest, largest.y);
    svg += Axes();
    for (auto series = panel_.series.rbegin(); series != panel_.series.rend(); ++series) {
      svg += Steps(*series) + Line(*series) + Crosses(*series);
    }
    return svg;
  }

 private:
  double X(double x) const {
    return left_ + kLeft + x / x_ticks_.back() * (kPanelWidth - kLeft - kRight);
  }
  double Y(double y) const {
    const double share = (y - y_ticks_.front()) / (y_ticks_.back() - y_ticks_.front());
    return top_ + kPanelHeight - kBottom - share * (kPanelHeight - kTop - kBottom);
  }

  std::string Axes() const {
    std::string svg;
    for (const double tick : x_ticks_) {
      svg += Stroke(X(tick), Y(y_ticks_.front()), X(tick), Y(y_ticks_.back()), "#e4e4e4");
      svg += Text(X(tick), Y(y_ticks_.front()) + 16, absl::StrCat(tick), "text-anchor=\"middle\"");
    }
    for (const double tick : y_ticks_) {
      svg += Stroke(X(0), Y(tick), X(x_ticks_.back()), Y(tick), "#e4e4e4");
      svg += Text(X(0) - 6, Y(tick) + 4, absl::StrCat(tick), "text-anchor=\"end\"");
    }
    svg += Stroke(X(0), Y(y_ticks_.front()), X(x_ticks_.back()), Y(y_ticks_.front()), "#000000");
    svg += Stroke(X(0), Y(y_ticks_.front()), X(0), Y(y_ticks_.back()), "#000000");
    svg += Text((X(0) + X(x_ticks_.back())) / 2, Y(y_ticks_.front()) + 38, panel_.x_label,
                "text-anchor=\"middle\"");
    const double x = left_ + 16;
    const double y = (Y(y_ticks_.front()) + Y(y_ticks_.back())) / 2;
    svg +=
        Text(x, y, panel_.y_label,
             absl::StrFormat("text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\"", x, y));
    return svg;
  }

  const Style& StyleOf(const Series& series) const {
    return *std::find_if(styles_.begin(), styles_.end(),
                         [&](const Style& style) { return style.label == series.label; });
  }

  std::string Steps(const Series& series) const {
    if (series.steps.empty()) return "";
    const Style& style = StyleOf(series);
    const PlotPoint& first = series.steps.front();
    std::string path = absl::StrFormat("M%.1f %.1f", X(first.x), Y(first.y));
    for (const PlotPoint& point : series.steps) {
      absl::StrAppendFormat(&path, "H%.1fV%.1f", X(point.x), Y(point.y));
    }
    // It holds for any larger budget.
    absl::StrAppendFormat(&path, "H%.1f", X(x_ticks_.back()));
    std::string svg = absl::StrFormat(
        "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\"/>\n", path, style.colour);
    if (series.steps.size() > kMarkersUpTo) return svg;
    for (const PlotPoint& point : series.steps) svg += Marker(X(point.x), Y(point.y), style);
    return svg;
  }

  // Interrupted where points are left out.
  std::string Line(const Series& series) const {
    if (series.line.empty()) return "";
    const Style& style = StyleOf(series);
    std::string path, markers;
    bool joins = false;
    for (const PlotPoint& point : series.line) {
      if (IsAbove(point)) {
        joins = false;
        continue;
      }
      absl::StrAppendFormat(&path, "%s%.1f %.1f", joins ? "L" : "M", X(point.x), Y(point.y));
      markers += Marker(X(point.x), Y(point.y), style);
      joins = true;
    }
    return absl::StrFormat("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\"/>\n",
                           path, style.colour) +
           markers;
  }

  bool IsAbove(const PlotPoint& point) const { return panel_.top > 0 && point.y > panel_.top; }

  std::string Crosses(const Series& series) const {
    std::string svg;
    for (const PlotPoint& point : series.crosses) {
      if (IsAbove(point)) continue;
      svg += Cross(X(point.x), Y(point.y), StyleOf(series).colour);
    }
    return svg;
  }

  const Panel& panel_;
  const std::vector<Style>& styles_;
  double left_;
  double top_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
};

struct Legend {
  std::string svg;
  double header = kHeader;  // grows with it
};

Legend LegendOf(const std::vector<Style>& styles) {
  constexpr double kCharacter = 6.8;
  constexpr double kRow = 18;
  Legend legend;
  std::string& svg = legend.svg;
  double x = 20;
  double y = 46;
  for (const Style& style : styles) {
    const double width = 50 + kCharacter * static_cast<double>(style.label.size());
    if (x + width > 2 * kPanelWidth) {
      x = 20;
      y += kRow;
    }
    if (style.crosses) {
      svg += Cross(x + 12, y, style.colour);
    } else {
      svg += Stroke(x, y, x + 24, y, style.colour) + Marker(x + 12, y, style);
    }
    svg += Text(x + 30, y + 4, style.label);
    x += width;
  }
  legend.header = std::max(kHeader, y + 6);
  return legend;
}

}  // namespace

std::string RenderSvg(const std::string& title, const std::vector<Panel>& panels) {
  const size_t columns = std::min<size_t>(2, std::max<size_t>(1, panels.size()));
  const size_t rows = (panels.size() + columns - 1) / columns;
  const std::vector<Style> styles = StylesOf(panels);
  const Legend legend = LegendOf(styles);
  const double width = 2 * kPanelWidth;  // room for the legend even with one panel
  const double height = legend.header + static_cast<double>(rows) * kPanelHeight;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
      width, height, width, height);
  svg += Text(20, 26, title, "font-size=\"16\" font-weight=\"bold\"");
  svg += legend.svg;
  for (size_t i = 0; i < panels.size(); ++i) {
    const size_t row = i / columns;
    const double left = static_cast<double>(i % columns) * kPanelWidth;
    const double top = legend.header + static_cast<double>(row) * kPanelHeight;
    svg += PanelWriter(panels[i], styles, left, top).Write();
  }
  return svg + "</svg>\n";
}

}  // namespace stowage
