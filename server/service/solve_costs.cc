#include "server/service/solve_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

using std::chrono::nanoseconds;

// Older measurements turn nobody away: else one slow solve might do so for good.
constexpr std::chrono::minutes kLately{1};
constexpr nanoseconds kMost = std::chrono::hours(1);

int64_t StepsOf(const Problem& problem) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) return graph->size();
  return std::get<Chain>(problem).length();
}

int SizeClass(int64_t steps) {
  return static_cast<int>(std::log2(static_cast<double>(std::max<int64_t>(steps, 1))));
}

// The planner's choice depends on the kind and on the link.
std::string SolverOf(const PlanningProblem& problem) {
  return absl::StrCat(ToString(problem.costs->kind()), " ", problem.costs->link() ? "linked " : "",
                      problem.options.solver);
}

nanoseconds Scaled(nanoseconds time, int classes) {
  const double scaled = static_cast<double>(time.count()) * std::pow(4.0, classes);
  return nanoseconds(static_cast<int64_t>(std::min(scaled, static_cast<double>(kMost.count()))));
}

// Of a solver never seen: microseconds by the square of the steps.
nanoseconds Guess(int size) { return Scaled(std::chrono::microseconds(1), size); }

}  // namespace

SolveEstimate SolveCosts::Estimate(const PlanningProblem& problem) const {
  const int size = SizeClass(StepsOf(problem.costs->problem()));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto solver = solvers_.find(SolverOf(problem));
  if (solver == solvers_.end()) return {Guess(size), false};
  const auto nearest = std::min_element(
      solver->second.begin(), solver->second.end(), [size](const auto& a, const auto& b) {
        return std::abs(a.first - size) < std::abs(b.first - size);
      });
  const bool lately = Clock::now() - nearest->second.last < kLately;
  return {Scaled(nearest->second.time, size - nearest->first), nearest->first == size && lately};
}

void SolveCosts::Measured(const PlanningProblem& problem, nanoseconds took) {
  const int size = SizeClass(StepsOf(problem.costs->problem()));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [mean, fresh] =
      solvers_[SolverOf(problem)].try_emplace(size, Mean{took, Clock::now()});
  if (fresh) return;
  constexpr int64_t kWeight = 4;  // a new one counts for a quarter
  mean->second.time += (took - mean->second.time) / kWeight;
  mean->second.last = Clock::now();
}

}  // namespace stowage
