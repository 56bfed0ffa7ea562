// A curve in characters, for terminals.
#ifndef STOWAGE_CLIENT_CLI_CURVE_SKETCH_H_
#define STOWAGE_CLIENT_CLI_CURVE_SKETCH_H_

#include <string>
#include <vector>

namespace stowage {

struct CurvePoint {
  double x = 0;
  double y = 0;
};

struct CurveAxis {
  std::string name;  // "budget, % of store-all"
  double low = 0;    // the ends of the axis, low < high
  double high = 1;
};

// A step function: from each point on, up to the next one, y is that point's. Points rise in x and are
// within the axes. `width` x `height` characters of plot, at least 2 each, beside them the y axis with its
// ends, below them the x axis with its.
std::string CurveSketch(const std::vector<CurvePoint>& points, const CurveAxis& x,
                        const CurveAxis& y, int width, int height);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_CURVE_SKETCH_H_
