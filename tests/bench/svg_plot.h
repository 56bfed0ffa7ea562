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

// Steps: what holds at a point holds up to the next one. Points by rising x. A series of few points
// gets a marker at each.
struct Series {
  std::string label;  // equal labels, equal colours in all panels
  std::vector<PlotPoint> points;
};

struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
};

// Round numbers from 0 to the first that is not below `top` (> 0): about `count` of them, each 1, 2
// or 5 times a power of ten apart.
std::vector<double> Ticks(double top, int count);

// Two panels side by side per row, both axes from 0. Panels without points are left empty.
std::string RenderSvg(const std::string& title, const std::vector<Panel>& panels);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_SVG_PLOT_H_
