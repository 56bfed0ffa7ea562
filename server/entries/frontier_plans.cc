#include "server/entries/frontier_plans.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "server/entries/frontier_under.h"

namespace stowage {

absl::StatusOr<std::vector<StoredPlan>> PlansOfFrontier(const Instance& instance,
                                                        const Frontier& frontier,
                                                        const std::string& solver_version,
                                                        const std::string& explanation) {
  const std::vector<Frontier::Point>& points = frontier.points();
  std::vector<StoredPlan> plans;
  for (size_t i = 0; i < points.size(); ++i) {
    const Bytes budget = i + 1 < points.size() ? points[i + 1].peak - Bytes(1) : points[i].peak;
    Plan plan = frontier.PlanAt(budget);
    plan.provenance.solver_version = solver_version;
    plan.explanation = explanation;
    absl::Status accepted = ValidatePlan(instance, &plan);
    if (!accepted.ok()) return accepted;
    plans.push_back({std::make_shared<const Plan>(std::move(plan))});
  }
  return plans;
}

Frontier FrontierOfPlans(const Instance& instance, const std::vector<StoredPlan>& plans) {
  FrontierBuilder builder(instance);
  FrontierInfo info;
  for (const StoredPlan& stored : plans) {
    const Plan& plan = *stored.plan;
    if (plan.status != PlanStatus::kFound || !builder.Add(plan.schedule).ok()) continue;
    info.solver = plan.provenance.solver;
    info.slots = plan.provenance.slots;
    info.schedule_class = plan.bounds.schedule_class;
  }
  return builder.Build(std::move(info));
}

}  // namespace stowage
