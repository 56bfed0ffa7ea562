#ifndef STOWAGE_CLIENT_TORCH_PROFILE_LINE_FIT_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_LINE_FIT_H_

#include <vector>

namespace stowage {

struct Point {
  double x;
  double y;
};

struct Line {
  double intercept;
  double slope;

  double at(double x) const { return intercept + slope * x; }
};

// A line that one bad point does not move. The slope is the median of those of all pairs (Theil, Sen),
// weighted by the root of their distance; the intercept the median of what the slope leaves, weighted by
// 1 / sqrt(x). So what tells more counts more, and of points that are powers of two apart none
// outweighs the others. At least two points, x > 0, not all the same.
// O(n^2 log n).
Line FitLine(const std::vector<Point>& points);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_LINE_FIT_H_
