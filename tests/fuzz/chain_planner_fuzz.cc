// Arbitrary chains, budgets and options through the facade: whatever comes in, the answer is a plan
// that two evaluators accept, a proof, or an error of the documented kinds.
#include <cstddef>
#include <cstdint>
#include <string>

#include "solvers/planner.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/draw_chain.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/require.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

using testing::ByteSource;
using testing::Require;

constexpr int kMaxStages = 24;  // beyond 15 there are no moving checkpoints

PlanOptions DrawOptions(ByteSource* in) {
  PlanOptions options;
  const std::vector<const Solver*> solvers = SolversOf(ProblemKind::kChain);
  const int solver = in->Below(static_cast<int>(solvers.size()) + 1);
  if (solver > 0) options.solver = solvers[static_cast<size_t>(solver) - 1]->info().name;
  if (in->OneIn(3)) options.solve.slots = in->OneIn(8) ? in->Quantity() : in->Below(200);
  if (in->OneIn(8)) options.solve.table_limit = Bytes(in->Quantity());
  options.solve.threads = 1 + in->Below(2);
  return options;
}

bool Documented(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

void CheckPlan(const Chain& chain, Bytes budget, const Plan& plan) {
  const std::string detail = testing::Describe(chain);
  if (plan.status == PlanStatus::kProvenInfeasible) {
    Require(budget < plan.bounds.least_budget, "infeasible below the least budget only", detail);
    return;
  }
  if (plan.status == PlanStatus::kNotFound) return;
  const testing::NaiveResult naive = testing::NaiveReplay(chain, plan.schedule);
  Require(naive.valid, "the schedule is valid", detail);
  Require(naive.peak == plan.prediction.peak.value(), "both evaluators see one peak", detail);
  Require(naive.peak <= budget.value(), "the peak is within the budget", detail);
  Require(naive.makespan == plan.prediction.makespan.value(), "both see one makespan", detail);
  Require(plan.bounds.lower_bound <= plan.prediction.makespan, "the bound is one", detail);
  const bool all_fits = plan.bounds.store_all_peak <= budget;
  Require(!all_fits || plan.prediction.recompute_time == Nanos(0), "what fits is stored", detail);
}

void CheckFrontier(const Chain& chain, const Frontier& frontier) {
  const std::string detail = testing::Describe(chain);
  const absl::StatusOr<Frontier> back = Frontier::Decode(frontier.Encode());
  Require(back.ok() && back->points().size() == frontier.points().size(), "it decodes", detail);
  for (const Frontier::Point& point : back->points()) {
    absl::StatusOr<Plan> plan = back->PlanAt(point.peak);
    Require(plan.ok() && ValidatePlan(chain, &*plan).ok(), "every point is a plan", detail);
    Require(plan->prediction.makespan == point.makespan, "its makespan is exact", detail);
    CheckPlan(chain, point.peak, *plan);
  }
}

}  // namespace

void Fuzz(ByteSource* in) {
  const absl::StatusOr<Chain> chain = Chain::Create(testing::DrawChain(kMaxStages, in));
  if (!chain.ok()) {
    Require(absl::IsInvalidArgument(chain.status()), "bad chains are bad arguments");
    return;
  }
  const PlanOptions options = DrawOptions(in);
  const Bytes budget = testing::DrawBudget(*chain, in);
  const absl::StatusOr<Plan> plan = MakePlan(*chain, budget, options);
  const std::string detail = testing::Describe(*chain);
  Require(plan.ok() || Documented(plan.status()), "errors are documented",
          plan.status().ToString() + "\n" + detail);
  if (plan.ok()) {
    CheckPlan(*chain, budget, *plan);
    // A frontier may repeat what takes no time, if that lowers the peak; a plan may not.
    const bool all_fits = plan->bounds.store_all_peak <= budget;
    Require(!all_fits || plan->prediction.recomputed_forwards == 0, "ties are kept", detail);
  }
  if (!in->OneIn(4)) return;
  const absl::StatusOr<Frontier> frontier = MakeFrontier(*chain, options);
  Require(frontier.ok() || Documented(frontier.status()), "errors are documented",
          frontier.status().ToString() + "\n" + detail);
  if (frontier.ok()) CheckFrontier(*chain, *frontier);
}

}  // namespace stowage
