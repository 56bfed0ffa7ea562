#include "solvers/drawing/axis_ticks.h"

#include <cmath>

namespace stowage {

std::vector<double> Ticks(double top, int count) {
  const double rough = top / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  std::vector<double> ticks;
  for (int i = 0; ticks.empty() || ticks.back() < top * (1 - 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace stowage
