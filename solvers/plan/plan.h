// A plan: the answer to "train this within that much memory".
#ifndef STOWAGE_SOLVERS_PLAN_PLAN_H_
#define STOWAGE_SOLVERS_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "solvers/model/chain.h"
#include "solvers/model/digest.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

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
  // No schedule at this budget is faster that has no more time on the communication stream than the
  // plan (solvers' plans: none).
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
  Simulation prediction;  // the referee's, under the costs of the profile that was asked with
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

// Replays the plan's schedule on `chain`, checks it against the plan's budget and replaces the
// prediction and the bounds that depend on costs. FAILED_PRECONDITION if the peak exceeds the
// budget, INVALID_ARGUMENT if the schedule does not fit the chain. Plans without a schedule pass
// unchanged.
absl::Status Referee(const Chain& chain, Plan* plan);
// The same for a schedule over the vertices of a graph.
absl::Status Referee(const Graph& graph, Plan* plan);
// The same where tensors may go to host memory and back.
absl::Status Referee(const Chain& chain, const TransferModel& transfers, Plan* plan);
absl::Status Referee(const Graph& graph, const TransferModel& transfers, Plan* plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_PLAN_H_
