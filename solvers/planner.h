// The facade of the solver library: an instance and a budget in, a validated plan out. A whole program:
//
//   #include <cstdio>
//
//   #include "solvers/planner.h"
//
//   int main() {
//     using namespace stowage;
//     Stage stage;
//     stage.forward_time = Nanos(10);
//     stage.backward_time = Nanos(20);
//     stage.output = stage.output_gradient = Bytes(100);
//     stage.saved = Bytes(300);  // the output among it
//     ChainSpec spec;
//     spec.stages.assign(8, stage);
//     const absl::StatusOr<Chain> chain = Chain::Create(spec);
//     if (!chain.ok()) return 1;  // a wrong field, by name
//     const absl::StatusOr<Plan> plan = MakePlan(*chain, ShareOfStoreAll{0.6}, {});
//     if (!plan.ok()) return 1;
//     if (plan->status != PlanStatus::kFound) {  // an answer, too
//       std::printf("needs %lld bytes\n", static_cast<long long>(plan->bounds.least_budget.value()));
//       return 1;
//     }
//     std::printf("%lld ns, at least %lld ns by any schedule within %lld bytes\n",
//                 static_cast<long long>(plan->prediction.makespan.value()),
//                 static_cast<long long>(plan->bounds.lower_bound.value()),
//                 static_cast<long long>(plan->budget.value()));
//   }
#ifndef STOWAGE_SOLVERS_PLANNER_H_
#define STOWAGE_SOLVERS_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/budget.h"
#include "solvers/model/problem.h"
#include "solvers/registry.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/solver.h"

namespace stowage {

// Rises with every change after which a request may get another plan, or the same plan another prediction: services then
// solve anew what they keep. Not the version of Stowage (solvers/base/version.h).
inline constexpr char kSolverVersion[] = "0.1.8";

struct PlanOptions {
  // Name of a solver for the instance's kind (FindSolver in solvers/registry.h). Empty: the planner chooses.
  std::string solver;
  SolveOptions solve;
  // Plans copy nothing to host memory, whatever link there is.
  bool recompute_only = false;
};

// What the numbers of a plan's instructions mean to the sender (Plan.stage_vertices): of a graph,
// the id of each vertex in program order; of a chain nothing, its stages are numbered.
std::vector<std::vector<int64_t>> StepVertices(const Problem& problem);

// Budget in bytes: a share by the store-all peak under the instance's costs, "least" by the named
// solver's class. Errors as for MakePlan; a budget in bytes is not looked at further.
absl::StatusOr<Bytes> ResolveBudget(const Instance& instance, const Budget& budget,
                                    const PlanOptions& options);

// A plan, with the strongest lower bound there is. Every plan that comes back FOUND was accepted by ValidatePlan
// within the budget. Errors: those of Solver (solvers/solver.h), INVALID_ARGUMENT for an unknown solver or a bad
// budget. Thread-safe.
absl::StatusOr<Plan> MakePlan(const Instance& instance, const Budget& budget,
                              const PlanOptions& options);

// All budgets at once (solvers/schedule/frontier.h), by the same choice of a solver. Errors as for MakePlan.
absl::StatusOr<Frontier> MakeFrontier(const Instance& instance, const PlanOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLANNER_H_
