#include "server/entries/plan_code.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/entries/problem_code.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"

namespace stowage {
namespace {

template <class Code, class P>
void CodePlan(Code* code, P* plan) {
  code->Choice(&plan->status, PlanStatus::kNotFound);
  code->Field(&plan->budget);
  code->Field(&plan->bounds.lower_bound);
  code->Field(&plan->bounds.proven_optimal);
  code->Field(&plan->bounds.schedule_class);
  code->Field(&plan->bounds.least_budget);
  code->Field(&plan->provenance.solver);
  code->Field(&plan->provenance.solver_version);
  code->Field(&plan->provenance.solve_time);
  code->Field(&plan->provenance.slots);
  code->Field(&plan->revision);
  code->Field(&plan->explanation);
}

template <class Code, class S>
void CodeStanding(Code* code, S* stored) {
  code->Choice(&stored->state, RevisionState::kRetired);
  code->Field(&stored->pinned);
}

// A few bytes may stand for many instructions. A run of a valid schedule goes over stages that there
// are, and takes a byte or more.
int64_t MostInstructions(const std::string& code, const Problem& problem) {
  const int64_t bytes = std::min(static_cast<int64_t>(code.size()), kMaxInstructions);
  return std::min(kMaxInstructions, bytes * (SizeOf(problem) + 1));
}

// That nothing fits cannot be replayed. But it is said of a budget below the least one, and plain
// training is a schedule that fits where it does.
bool IsConsistent(const Plan& plan) {
  if (!plan.schedule.empty()) return false;
  return plan.status != PlanStatus::kProvenInfeasible ||
         (plan.budget < plan.bounds.least_budget &&
          plan.bounds.least_budget <= plan.bounds.store_all_peak);
}

// `plan` knows what store-all takes.
bool EvaluatorAccepts(const Instance& reference, Plan* plan) {
  if (plan->status != PlanStatus::kFound) return IsConsistent(*plan);
  const absl::StatusOr<Simulation> simulation = Evaluator(reference).Run(plan->schedule);
  if (!simulation.ok() || simulation->peak > plan->budget ||
      simulation->makespan < plan->bounds.lower_bound) {
    return false;
  }
  plan->prediction = *simulation;
  return true;
}

}  // namespace

void WritePlan(const StoredPlan& stored, FieldWriter* out) {
  CodeStanding(out, &stored);
  CodePlan(out, stored.plan.get());
  const std::string schedule = EncodeSchedule(stored.plan->schedule);
  out->Field(&schedule);
}

void ReadPlan(const Instance& reference, const Simulation& store_all, FieldReader* in,
              StoredPlan* stored) {
  auto plan = std::make_shared<Plan>();
  std::string code;
  CodeStanding(in, stored);
  CodePlan(in, plan.get());
  in->Field(&code);
  if (!in->ok()) return;
  absl::StatusOr<Schedule> schedule =
      DecodeSchedule(code, MostInstructions(code, reference.problem()));
  if (!schedule.ok()) return in->Fail();
  plan->schedule = *std::move(schedule);
  plan->bounds.store_all_makespan = store_all.makespan;
  plan->bounds.store_all_peak = store_all.peak;
  if (!EvaluatorAccepts(reference, plan.get())) return in->Fail();
  stored->plan = std::move(plan);
}

}  // namespace stowage
