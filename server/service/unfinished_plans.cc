#include "server/service/unfinished_plans.h"

#include <string>
#include <utility>

#include "server/entries/plan_entry.h"
#include "server/entries/plan_under.h"
#include "server/entries/staleness.h"

namespace stowage {
namespace {

// Whether `judged`, which is `kept` under other costs, is as good as a search under these would find. One that was made
// without times is any schedule that fits.
bool IsFresh(const Instance& asked, const Instance& costs, const Plan& kept, const Plan& judged) {
  if (costs.ideal_time() == Nanos(0) && asked.ideal_time() > Nanos(0)) return false;
  const Staleness staleness = StalenessOf(asked, costs, kept.prediction.makespan, judged);
  return FreshnessOf(staleness) == Freshness::kFresh;
}

}  // namespace

void UnfinishedPlans::Keep(const PlanningProblem& problem, Bytes budget,
                           const UnfinishedPlan& found) {
  const Schedule& schedule = found.plan.schedule;
  const Bytes charge = ChargeOf(*problem.costs) +
                       Bytes(static_cast<int64_t>(sizeof(UnfinishedPlan) + sizeof(Unfinished) +
                                                  problem.canonical->size() +
                                                  schedule.size() * sizeof(schedule[0])));
  const Question question{problem.key, budget};
  if (charge > capacity_) return Drop(problem, budget);
  // Made apart and then linked: where memory runs out, no question is ordered that has no plan.
  std::map<Question, Unfinished> made;
  Unfinished& unfinished = made[question];
  unfinished = {problem.canonical,
                problem.costs,
                std::make_shared<const UnfinishedPlan>(found),
                MemoryOwnerOf(problem),
                {}};
  std::lock_guard<std::mutex> lock(mutex_);
  // As an entry's (memory_owner.h): it is not another's because that one asked for it last.
  const auto former = plans_.find(question);
  if (former != plans_.end()) unfinished.owner = former->second.owner;
  Order::PreparedItem ordered(unfinished.owner, charge, question);
  DropLocked(question);
  unfinished.place = order_.Add(std::move(ordered));
  plans_.insert(made.extract(made.begin()));
  while (order_.held() > capacity_) DropLocked(Question(*order_.Next()));
}

std::optional<UnfinishedPlan> UnfinishedPlans::Find(const PlanningProblem& problem,
                                                    Bytes budget) const {
  Unfinished kept;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto place = plans_.find({problem.key, budget});
    if (place == plans_.end() || *place->second.canonical != *problem.canonical)
      return std::nullopt;
    kept = place->second;
  }
  const UnfinishedPlan& found = *kept.found;
  std::optional<Plan> plan =
      PlanUnder(*problem.costs, problem.store_all, *kept.costs, found.plan, budget);
  if (!plan) return std::nullopt;
  plan->search_complete = false;
  const bool fresh = IsFresh(*problem.costs, *kept.costs, found.plan, *plan);
  return UnfinishedPlan{*std::move(plan), found.searched, found.begun, fresh};
}

void UnfinishedPlans::Drop(const PlanningProblem& problem, Bytes budget) {
  std::lock_guard<std::mutex> lock(mutex_);
  DropLocked({problem.key, budget});
}

void UnfinishedPlans::DropLocked(const Question& question) {
  const auto found = plans_.find(question);
  if (found == plans_.end()) return;
  order_.Remove(found->second.place);
  plans_.erase(found);
}

}  // namespace stowage
