#include "server/service/unfinished_plans.h"

#include <string>

#include "server/entries/plan_entry.h"
#include "server/entries/plan_under.h"

namespace stowage {

void UnfinishedPlans::Keep(const PlanningProblem& problem, Bytes budget, const Plan& plan) {
  const Bytes charge =
      ChargeOf(*problem.costs) +
      Bytes(static_cast<int64_t>(sizeof(Plan) + sizeof(Unfinished) + problem.canonical->size() +
                                 plan.schedule.size() * sizeof(plan.schedule[0])));
  const Question question{problem.key, budget};
  if (charge > capacity_) return Drop(problem, budget);
  // Made apart and then linked: where memory runs out, no question is ordered that has no plan.
  std::list<Question> ordered = {question};
  std::map<Question, Unfinished> made;
  made[question] = Unfinished{problem.canonical, problem.costs, std::make_shared<const Plan>(plan),
                              charge, ordered.begin()};
  std::lock_guard<std::mutex> lock(mutex_);
  DropLocked(question);
  while (held_ + charge > capacity_) DropLocked(Question(order_.front()));
  order_.splice(order_.end(), ordered);
  plans_.insert(made.extract(made.begin()));
  held_ = held_ + charge;
}

std::optional<Plan> UnfinishedPlans::Find(const PlanningProblem& problem, Bytes budget) const {
  Unfinished found;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto place = plans_.find({problem.key, budget});
    if (place == plans_.end() || *place->second.canonical != *problem.canonical)
      return std::nullopt;
    found = place->second;
  }
  std::optional<Plan> plan =
      PlanUnder(*problem.costs, problem.store_all, *found.costs, *found.plan, budget);
  if (plan) plan->search_complete = false;
  return plan;
}

void UnfinishedPlans::Drop(const PlanningProblem& problem, Bytes budget) {
  std::lock_guard<std::mutex> lock(mutex_);
  DropLocked({problem.key, budget});
}

void UnfinishedPlans::DropLocked(const Question& question) {
  const auto found = plans_.find(question);
  if (found == plans_.end()) return;
  held_ = held_ - found->second.charge;
  order_.erase(found->second.place);
  plans_.erase(found);
}

}  // namespace stowage
