// What searches had found when they were ended: by a deadline, or because nobody waited any more.
#ifndef STOWAGE_SERVER_SERVICE_UNFINISHED_PLANS_H_
#define STOWAGE_SERVER_SERVICE_UNFINISHED_PLANS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/entries/memory_owner.h"
#include "server/entries/planning_problem.h"
#include "server/store/fair_order.h"
#include "solvers/model/canonical.h"
#include "solvers/model/units.h"
#include "solvers/schedule/plan.h"

namespace stowage {

struct UnfinishedPlan {
  Plan plan;
  std::chrono::nanoseconds searched{0};  // the longest search of those for it
  int64_t begun = 0;                     // PlanCache::Begin of the last one
  // What Find says: under the costs of who asks it is about as good as a search under them would find.
  bool fresh = true;
};

// In memory, and of no cache: whoever asks for the same again is answered with it or begins with it, and whoever asks
// by key alone is not given it. Thread-safe.
class UnfinishedPlans {
 public:
  // Holds at most that many bytes: of the owners (memory_owner.h) that hold most, in 64ths of them, what was kept longest ago goes first
  // (fair_order.h).
  explicit UnfinishedPlans(Bytes capacity) : capacity_(capacity), order_(FairGranule(capacity)) {}

  // In the place of what was kept for the same problem and budget, whose owner stays. `found.plan` was found, under the problem's costs.
  // O(size of plan and costs).
  void Keep(const PlanningProblem& problem, Bytes budget, const UnfinishedPlan& found);

  // What was kept for it, judged under the costs of `problem` (PlanUnder); nothing where that is none. O(replay).
  std::optional<UnfinishedPlan> Find(const PlanningProblem& problem, Bytes budget) const;

  // A search has come to its end.
  void Drop(const PlanningProblem& problem, Bytes budget);

 private:
  using Question = std::pair<PlanKey, Bytes>;
  using Order = FairOrder<MemoryOwner, Question>;
  struct Unfinished {
    std::shared_ptr<const std::string> canonical;
    std::shared_ptr<const Instance> costs;
    std::shared_ptr<const UnfinishedPlan> found;
    MemoryOwner owner;
    Order::Place place;
  };

  void DropLocked(const Question& question);

  const Bytes capacity_;
  mutable std::mutex mutex_;
  std::map<Question, Unfinished> plans_;
  Order order_;  // by when they were kept
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_UNFINISHED_PLANS_H_
