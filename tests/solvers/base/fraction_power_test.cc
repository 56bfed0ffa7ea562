#include "solvers/base/fraction_power.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stowage {
namespace {

TEST(FractionPower, IsThePower) {
  std::mt19937_64 rng(1);
  std::uniform_real_distribution<double> bases(0.0, 1.0), large(1.0, 1e12), exponents(0.0, 1.0);
  for (int i = 0; i < 10000; ++i) {
    const double base = i % 2 == 0 ? bases(rng) : large(rng), exponent = exponents(rng);
    const double power = std::pow(base, exponent);
    EXPECT_NEAR(FractionPower(base, exponent), power, 1e-14 * power) << base << "^" << exponent;
  }
}

TEST(FractionPower, IsExactWhereRootsAre) {
  EXPECT_EQ(FractionPower(16.0, 0.0), 1.0);
  EXPECT_EQ(FractionPower(16.0, 1.0), 16.0);
  EXPECT_EQ(FractionPower(16.0, 0.5), 4.0);
  EXPECT_EQ(FractionPower(16.0, 0.25), 2.0);
  EXPECT_EQ(FractionPower(16.0, 0.75), 8.0);
  EXPECT_EQ(FractionPower(0.0, 0.5), 0.0);
}

}  // namespace
}  // namespace stowage
