// The budgets that solvers search at whose plans for one budget would not be monotone by themselves: the answer for a
// budget is the fastest of what is found at the budgets of the grid up to it, and the grid does not depend on the
// budget. So more budget is never slower (solvers/transfer/algorithms.md, "More budget is never slower").
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_BUDGET_GRID_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_BUDGET_GRID_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

enum class Spacing {
  kEven,
  kFineBelow,  // by squares: where memory is scarce, a little more of it gains the most
};

// `steps` budgets from `least` on, below `most`; each once, rising. Only `least` where that is not below `most`.
inline std::vector<Bytes> BudgetGrid(Bytes least, Bytes most, int64_t steps, Spacing spacing) {
  std::vector<Bytes> grid = {least};
  const int64_t range = most > least ? (most - least).value() : 0;
  const bool even = spacing == Spacing::kEven;
  const int64_t parts = even ? steps : steps * steps;
  for (int64_t i = 1; i < steps; ++i) {
    const int64_t part = even ? i : i * i;
    const Bytes budget = least + Bytes(range / parts * part + range % parts * part / parts);
    if (budget > grid.back()) grid.push_back(budget);
  }
  return grid;
}

// Of joint, on chains and on graphs: from its least budget to the peak of plain training.
inline constexpr int64_t kJointBudgets = 40;
inline std::vector<Bytes> JointGrid(Bytes least, Bytes most) {
  return BudgetGrid(least, most, kJointBudgets, Spacing::kFineBelow);
}

// Those of a grid that count for a budget no less than the first of it: up to it, and the first beyond it, for which
// something may be found that needs no more.
inline std::vector<Bytes> GridFor(std::vector<Bytes> grid, Bytes budget) {
  const auto beyond = std::upper_bound(grid.begin(), grid.end(), budget);
  if (beyond != grid.end()) grid.erase(beyond + 1, grid.end());
  return grid;
}

// The numbers below `count`, each once: 0, then what halves the greatest gaps between those before.
inline std::vector<size_t> ApartFirst(size_t count) {
  size_t step = 1;
  while (step < count) step *= 2;
  std::vector<size_t> order;
  if (count > 0) order.push_back(0);
  for (; step > 1; step /= 2) {
    for (size_t i = step / 2; i < count; i += step) order.push_back(i);
  }
  return order;
}

// The fastest schedule offered so far that fits a memory, the first of equally fast ones. Not thread-safe.
class FastestSchedule {
 public:
  using Improved = std::function<void(const Schedule&)>;

  // `improved`, unless it is empty, hears of every schedule that is faster than those before.
  explicit FastestSchedule(Bytes memory, Improved improved = nullptr)
      : memory_(memory), improved_(std::move(improved)) {}

  Bytes memory() const { return memory_; }

  bool found() const { return found_; }
  // More than any schedule's where none is found.
  Nanos makespan() const { return makespan_; }
  const Schedule& schedule() const { return schedule_; }
  const std::string& explanation() const { return explanation_; }

  // Keeps it if it fits and is faster than all before.
  void Offer(const Schedule& schedule, Bytes peak, Nanos makespan,
             const std::string& explanation = "") {
    if (peak > memory_ || makespan >= makespan_) return;
    found_ = true;
    makespan_ = makespan;
    schedule_ = schedule;
    explanation_ = explanation;
    if (improved_) improved_(schedule);
  }

 private:
  Bytes memory_;
  Improved improved_;
  bool found_ = false;
  Nanos makespan_{kMaxTotal};
  Schedule schedule_;
  std::string explanation_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_BUDGET_GRID_H_
