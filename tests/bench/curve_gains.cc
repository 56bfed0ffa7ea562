#include "tests/bench/curve_gains.h"

#include <cstdint>
#include <tuple>

namespace stowage {
namespace {

constexpr int64_t kBudgets = 40;

double Gain(Nanos theirs, Nanos ours) {
  return static_cast<double>(theirs.value()) / static_cast<double>(ours.value()) - 1;
}

// The fastest run that fits, or null; of equally fast ones that with the lower peak.
const SequentialRun* BestRun(const ConfigurationCurves& curves, Bytes memory) {
  const SequentialRun* best = nullptr;
  for (const SequentialRun& run : curves.runs) {
    if (run.peak > memory) continue;
    if (best == nullptr ||
        std::tie(run.makespan, run.peak) < std::tie(best->makespan, best->peak)) {
      best = &run;
    }
  }
  return best;
}

}  // namespace

std::optional<double> GainOverBestRun(const ConfigurationCurves& curves,
                                      const std::string& strategy, Bytes memory) {
  const Frontier* ours = CurveOf(curves, strategy);
  const SequentialRun* run = BestRun(curves, memory);
  if (ours == nullptr || run == nullptr) return std::nullopt;
  const Frontier::Point* point = ours->At(run->peak);
  if (point == nullptr) return std::nullopt;
  return Gain(run->makespan, point->makespan);
}

std::optional<double> GainOverCurve(const ConfigurationCurves& curves,
                                    const std::string& strategy) {
  const Frontier* sequential = CurveOf(curves, kSequential);
  const Frontier* ours = CurveOf(curves, strategy);
  if (sequential == nullptr || ours == nullptr) return std::nullopt;
  double sum = 0;
  int budgets = 0;
  for (const Bytes budget : BudgetGrid(curves)) {
    const Frontier::Point* theirs = sequential->At(budget);
    const Frontier::Point* point = ours->At(budget);
    if (theirs == nullptr || point == nullptr) continue;
    sum += Gain(theirs->makespan, point->makespan);
    ++budgets;
  }
  if (budgets == 0) return std::nullopt;
  return sum / budgets;
}

std::vector<Bytes> BudgetGrid(const ConfigurationCurves& curves) {
  std::vector<Bytes> budgets;
  for (int64_t i = 1; i <= kBudgets; ++i) {
    budgets.push_back(Bytes(curves.store_all_peak.value() / kBudgets * i +
                            curves.store_all_peak.value() % kBudgets * i / kBudgets));
  }
  return budgets;
}

}  // namespace stowage
