// A plan: the answer to "train this within that much memory".
#ifndef STOWAGE_SOLVERS_SCHEDULE_PLAN_H_
#define STOWAGE_SOLVERS_SCHEDULE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "solvers/model/digest.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

enum class PlanStatus {
  kFound,
  kProvenInfeasible,  // nothing of schedule_class fits, nor anything below least_budget
  kNotFound,          // nothing found, nothing proven; see explanation
};

const char* ToString(PlanStatus status);

struct Bounds {
  Nanos store_all_makespan;
  Bytes store_all_peak;
  // No schedule within this budget is faster, if it spends no more time on the communication stream than the
  // plan's schedule does.
  Nanos lower_bound;
  bool proven_optimal = false;  // fastest of schedule_class at this budget
  std::string schedule_class;   // "memory-persistent schedules"
  // kProvenInfeasible: nothing of schedule_class fits below it; of chains, the class fits in it,
  // unless host memory is short. Else the smallest budget that the solver has a schedule for; 0 if
  // not known.
  Bytes least_budget;
};

struct Provenance {
  std::string solver;
  std::string solver_version;
  Nanos solve_time;
  int64_t slots = 0;  // of the solver's table; 0 without one
};

struct Plan {
  PlanStatus status = PlanStatus::kNotFound;
  Bytes budget;
  Schedule schedule;      // empty unless kFound
  Simulation prediction;  // the evaluator's, under the costs of the profile that was asked with
  Bounds bounds;
  Provenance provenance;
  // Of a graph: entry p holds the id (the sender's) of the vertex that instructions call stage p + 1.
  // Empty for a chain.
  std::vector<std::vector<int64_t>> stage_vertices;
  int64_t revision = 1;
  // False: the deadline cut the search short, or nobody said that it did not. The schedule is as good as
  // any other, but a longer search may find a faster one, so it is not for keeping.
  bool search_complete = true;
  std::string explanation;

  // makespan / lower bound - 1; 0 when the bound is 0.
  double gap() const;
};

// Replays the plan's schedule on the instance, checks it against the plan's budget and replaces the prediction and
// the bounds that depend on costs; a schedule that meets the lower bound is the fastest of any class. Plans without
// a schedule keep their status and get the bounds. FAILED_PRECONDITION if the peak exceeds the budget,
// INVALID_ARGUMENT if the schedule is not valid on the instance, or plain training (Instance::store_all) is not.
absl::Status ValidatePlan(const Instance& instance, Plan* plan);

// Gives a validated plan the strongest lower bound there is (lower_bound.h): for plans that are made or taken over
// once, not for every answer of a cache; it takes milliseconds.
void StrengthenBound(const Instance& instance, Plan* plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_PLAN_H_
