// A frontier: what a solver can do at every budget, as one object that a cache can keep.
//
// Its points are schedules that the evaluator has replayed in exact bytes, none of them dominated:
// peaks rise, makespans fall. More budget is never slower, because a budget gets the fastest point
// whose peak it holds. Plans are made from it on demand.
#ifndef STOWAGE_SOLVERS_SCHEDULE_FRONTIER_H_
#define STOWAGE_SOLVERS_SCHEDULE_FRONTIER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct FrontierInfo {
  std::string solver;
  std::string schedule_class;
  Bytes least_budget;  // below it, nothing of the class fits: proven
  bool exact = false;  // at every budget, no schedule of the class is faster
  int64_t slots = 0;   // the most slots of any table behind it; 0 without one
  // Where false, a deadline cut the search short: a longer one may find more points, and faster ones.
  bool search_complete = true;
};

class Frontier {
 public:
  struct Point {
    Bytes peak;
    Nanos makespan;
    PackedSchedule schedule;
  };

  const FrontierInfo& info() const { return info_; }
  // Peaks strictly rise, makespans strictly fall.
  const std::vector<Point>& points() const { return points_; }

  // The fastest point that fits, or null. O(log points).
  const Point* At(Bytes budget) const;

  // The plan for a budget: FOUND with the schedule of At(budget), PROVEN_INFEASIBLE below
  // info().least_budget, NOT_FOUND between it and the first point. Not validated yet (ValidatePlan): the caller does
  // it, under the costs that hold for it.
  Plan PlanAt(Bytes budget) const;

  // Versioned bytes, a few hundred per point. Decode takes only what Encode wrote: INVALID_ARGUMENT
  // otherwise. What is decoded has not been validated.
  std::string Encode() const;
  static absl::StatusOr<Frontier> Decode(const std::string& bytes);

 private:
  friend class FrontierBuilder;
  FrontierInfo info_;
  std::vector<Point> points_;
};

// What a point costs, before or after its schedule is made.
struct PointCost {
  Nanos makespan;
  int64_t bytes = 0;  // of its packed schedule
  Bytes peak{0};      // 0 throughout: each point serves as many budgets as another
};

// Of a compact frontier.
inline constexpr size_t kMostPoints = 600;

// Which of the points of a frontier, in its order, are kept where it shall be small: all, if they
// are at most `most` >= 1. Else those that are faster than the
// one kept before by some share of the makespan, the least that leaves no more; the first always, and
// the last where `most` is 2 or more. Of these, where their schedules take more than 16 MiB, those go that are worth the
// least for their bytes; the first leaves half of that to the others, however long it is. Rising indices. O(points), and
// O(most^2) where bytes are too many.
std::vector<size_t> ChooseCompact(const std::vector<PointCost>& points, size_t most = kMostPoints);
// The same where the points are shown without their schedules.
std::vector<size_t> ChooseCompact(const std::vector<Frontier::Point>& points, size_t most);

// Collects schedules of one instance. Not thread-safe.
class FrontierBuilder {
 public:
  static constexpr Bytes kMemory{int64_t{1} << 30};

  // Points may take `memory`, schedules included. Where they would take more, those go that gain least: the first and
  // the last stay, and what is built is not exact.
  explicit FrontierBuilder(Instance instance, Bytes memory = kMemory)
      : evaluator_(std::move(instance)), memory_(memory) {}

  // Replays the schedule. INTERNAL if the evaluator refuses it: solvers add valid ones only.
  // O(instructions).
  absl::Status Add(const Schedule& schedule);
  // Every point of another frontier of the same problem.
  void Add(const Frontier& frontier);

  // The fastest point so far that fits, or null; until the next Add. O(log points).
  const Frontier::Point* At(Bytes budget) const;
  // The makespan that is known for a budget so far; Nanos(INT64_MAX) if none fits. O(log points).
  Nanos MakespanAt(Bytes budget) const;

  // Drops points that are faster than a smaller one by less than the share `tolerance`, the fastest
  // excepted.
  Frontier Build(FrontierInfo info, double tolerance = 0.0) const;
  // The points of ChooseCompact: what a cache would want to keep. Exact only if info says so and
  // that is all of them.
  Frontier BuildCompact(FrontierInfo info) const;

 private:
  void Insert(Frontier::Point point);
  void Thin();

  Evaluator evaluator_;
  const Bytes memory_;
  Bytes taken_;
  bool thinned_ = false;
  std::vector<Frontier::Point> points_;  // as in Frontier
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_FRONTIER_H_
