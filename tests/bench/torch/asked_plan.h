// Plans for measured networks: by a named solver at a share of what plain training takes, with or
// without a link to host memory.
#ifndef STOWAGE_TESTS_BENCH_TORCH_ASKED_PLAN_H_
#define STOWAGE_TESTS_BENCH_TORCH_ASKED_PLAN_H_

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/plan.h"

namespace stowage {

struct AskedPlan {
  std::string solver;     // empty: the planner's choice
  double share = 1;       // of plain training's peak
  bool may_move = false;  // tensors to host memory and back
};

// A link, each way on its own, that moves all of plain training's peak once in half of a step: copies are
// neither free nor hopeless.
TransferModel LinkFor(const Problem& problem);

// The plan for that share; where there is none, for shares ever nearer to all, and at last for all.
// Searches are cut off after `patience`: a plan that was not found where even the last had nothing by
// then. Errors: those of MakePlan.
absl::StatusOr<Plan> PlanFor(const Problem& problem, const AskedPlan& asked,
                             const TransferModel& link, std::chrono::milliseconds patience);

// How many of its instructions start a copy.
int Copies(const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_ASKED_PLAN_H_
