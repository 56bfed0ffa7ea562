// Figures of one quantity against another as SVG: several panels, one legend.
#ifndef STOWAGE_TESTS_BENCH_SVG_PLOT_H_
#define STOWAGE_TESTS_BENCH_SVG_PLOT_H_

#include <string>
#include <vector>

namespace stowage {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string label;  // equal labels, equal colours in all panels
  // Steps, by rising x: what holds at a point holds up to the next one. Up to 40 points get a
  // marker each.
  std::vector<PlotPoint> steps = {};
  std::vector<PlotPoint> crosses = {};  // each on its own
  std::vector<PlotPoint> line = {};     // joined, by rising x, with a marker each
};

struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  double top = 0;        // points above it are left out; 0: no limit
  bool y_from_0 = true;  // else from a little below the lowest point: to tell curves apart
};

// Two panels side by side per row, the x axis from 0, the first of the series on top. Panels without points are
// left empty.
std::string RenderSvg(const std::string& title, const std::vector<Panel>& panels);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_SVG_PLOT_H_
