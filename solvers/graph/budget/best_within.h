// Of a search over all budgets, the best at one of them: who asked for it hears of it as it gets better.
// Internal to solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_BEST_WITHIN_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_BEST_WITHIN_H_

#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/schedule_code.h"

namespace stowage {

// Not thread-safe. Without a budget nothing is found and nobody told.
class BestWithin {
 public:
  BestWithin(std::optional<Bytes> budget, std::function<void(const Schedule&)> tell)
      : budget_(budget), tell_(std::move(tell)) {}

  const std::optional<Bytes>& budget() const { return budget_; }

  bool FoundIn(const FrontierBuilder& points) const {
    return budget_ && points.At(*budget_) != nullptr;
  }

  // Tells of the fastest point, if it is faster than those told of before.
  absl::Status TellOf(const FrontierBuilder& points) {
    if (!tell_ || !FoundIn(points)) return absl::OkStatus();
    const Frontier::Point& best = *points.At(*budget_);
    if (best.makespan >= told_) return absl::OkStatus();
    told_ = best.makespan;
    const absl::StatusOr<Schedule> schedule = DecodeSchedule(best.schedule, kMaxInstructions);
    if (!schedule.ok()) return absl::InternalError(schedule.status().message());
    tell_(*schedule);
    return absl::OkStatus();
  }

 private:
  const std::optional<Bytes> budget_;
  const std::function<void(const Schedule&)> tell_;
  Nanos told_{std::numeric_limits<int64_t>::max()};
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_BEST_WITHIN_H_
