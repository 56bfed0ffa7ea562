#include "client/torch/profile/line_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stowage {
namespace {

struct Weighted {
  double value;
  double weight;
};

double WeightedMedian(std::vector<Weighted> values) {
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double left = 0;
  for (const Weighted& value : values) left += value.weight / 2;
  for (const Weighted& value : values) {
    left -= value.weight;
    if (left <= 0) return value.value;
  }
  return values.back().value;
}

}  // namespace

Line FitLine(const std::vector<Point>& points) {
  std::vector<Weighted> slopes;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double distance = points[i].x - points[j].x;
      if (distance == 0) continue;
      slopes.push_back({(points[i].y - points[j].y) / distance, std::sqrt(std::abs(distance))});
    }
  }
  const double slope = WeightedMedian(std::move(slopes));
  std::vector<Weighted> rests;
  for (const Point& point : points)
    rests.push_back({point.y - slope * point.x, 1 / std::sqrt(point.x)});
  return {WeightedMedian(std::move(rests)), slope};
}

}  // namespace stowage
