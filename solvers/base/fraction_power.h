// Powers that are the same on every machine, for what equal plans depend on.
#ifndef STOWAGE_SOLVERS_BASE_FRACTION_POWER_H_
#define STOWAGE_SOLVERS_BASE_FRACTION_POWER_H_

#include <cmath>

namespace stowage {

// base^exponent for base >= 0 and exponent in [0, 1]. Square roots and products are rounded alike
// everywhere (IEEE 754); std::pow is not. Relative error below 1e-14. O(1).
inline double FractionPower(double base, double exponent) {
  if (exponent >= 1.0) return base;
  double result = 1.0, root = base;
  // The binary digits of the exponent, the first for the square root.
  for (int digit = 0; digit < 53 && exponent > 0.0; ++digit) {
    root = std::sqrt(root);
    exponent *= 2.0;
    if (exponent < 1.0) continue;
    result *= root;
    exponent -= 1.0;
  }
  return result;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_FRACTION_POWER_H_
