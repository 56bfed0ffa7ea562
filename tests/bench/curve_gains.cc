#include "tests/bench/curve_gains.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "solvers/plan/schedule.h"

namespace stowage {
namespace {

constexpr int64_t kBudgets = 40;

double Gain(Nanos theirs, Nanos ours) {
  return static_cast<double>(theirs.value()) / static_cast<double>(ours.value()) - 1;
}

// The fastest run of 2 to 2 sqrt(L) segments that fits, or null.
const Frontier::Point* BestRun(const ConfigurationCurves& curves, const Frontier& sequential,
                               Bytes memory) {
  const int most = std::max(2, static_cast<int>(2 * std::sqrt(curves.length)));
  const Frontier::Point* best = nullptr;
  for (const Frontier::Point& point : sequential.points()) {
    if (point.peak > memory) break;
    const int segments = SegmentsOf(sequential, point);
    if (segments >= 2 && segments <= most) best = &point;
  }
  return best;
}

}  // namespace

int SegmentsOf(const Frontier& frontier, const Frontier::Point& point) {
  const absl::StatusOr<Plan> plan = frontier.PlanAt(point.peak);
  if (!plan.ok()) return 0;
  return 1 + static_cast<int>(
                 std::count_if(plan->schedule.begin(), plan->schedule.end(),
                               [](const Instruction& i) { return i.op == Op::kForwardKeepInput; }));
}

std::optional<double> GainOverBestRun(const ConfigurationCurves& curves,
                                      const std::string& strategy, Bytes memory) {
  const Frontier* sequential = CurveOf(curves, kSequential);
  const Frontier* ours = CurveOf(curves, strategy);
  if (sequential == nullptr || ours == nullptr) return std::nullopt;
  const Frontier::Point* run = BestRun(curves, *sequential, memory);
  if (run == nullptr) return std::nullopt;
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
