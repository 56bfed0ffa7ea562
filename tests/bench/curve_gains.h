// How much more throughput a strategy gives than checkpoint_sequential in the same memory.
#ifndef STOWAGE_TESTS_BENCH_CURVE_GAINS_H_
#define STOWAGE_TESTS_BENCH_CURVE_GAINS_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/curve_set.h"

namespace stowage {

inline constexpr char kSequential[] = "checkpoint_sequential";

// As Beaumont et al. 2019, section 5.4, define it: the highest throughput that 2 to 2 sqrt(L)
// segments reach within `memory`, against the strategy at that run's peak. 0.1 is 10% more
// throughput; no value where either is missing.
std::optional<double> GainOverBestRun(const ConfigurationCurves& curves,
                                      const std::string& strategy, Bytes memory);

// The same at equal budgets, the mean over 40 budgets equally spaced up to the store-all peak, those
// left out that either cannot keep to.
std::optional<double> GainOverCurve(const ConfigurationCurves& curves, const std::string& strategy);

// 1/40, ..., 40/40 of the store-all peak.
std::vector<Bytes> BudgetGrid(const ConfigurationCurves& curves);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CURVE_GAINS_H_
