// Solves cached plans anew in the background, at a limited rate: after costs have drifted, after an
// upgrade, and where a plan has become stale for a caller.
//
// What really solves is a callback: it hands the solve to threads that have nothing better to do, and
// whoever solves counts it (ServerMetrics::Resolved).
#ifndef STOWAGE_SERVER_SERVICE_RESOLVER_H_
#define STOWAGE_SERVER_SERVICE_RESOLVER_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_problem.h"
#include "server/observe/server_metrics.h"
#include "server/runtime/token_bucket.h"

namespace stowage {

struct ResolveWish {
  PlanKey key;
  Bytes budget;
  ResolveReason reason = ResolveReason::kStale;
  // Whose costs it is to be solved under; null: those of the entry's reference.
  std::shared_ptr<const PlanningProblem> asked;
};

struct ResolverOptions {
  std::chrono::nanoseconds interval =
      std::chrono::seconds(2);  // between two solves, in the long run
  int burst = 10;
  size_t queue_limit = 1024;
  size_t asked_limit = 64;  // of these, how many may have costs of their own, which take memory
  // A key and budget that was solved is not solved again for so long: what a solve does not change, it
  // will not change a moment later either.
  std::chrono::nanoseconds rest = std::chrono::minutes(10);
};

// Which wish is next, and when. Not thread-safe; time is the caller's.
class ResolveQueue {
 public:
  using Time = TokenBucket::Time;

  ResolveQueue(const ResolverOptions& options, Time now);

  // False when it is there already, rests, or the queue is full, also of costs. An upgrade waits for all the others.
  bool Add(const ResolveWish& wish, Time now);
  // The next one, if there is one and the rate allows it.
  std::optional<ResolveWish> Take(Time now);
  // When Take has something; nothing while the queue is empty.
  std::optional<Time> NextAt() const;
  // What was taken needed no solve.
  void GiveBack() { bucket_.GiveBack(); }
  size_t size() const { return urgent_.size() + upgrades_.size(); }

 private:
  using Question = std::pair<PlanKey, int64_t>;

  static Question QuestionOf(const ResolveWish& wish) { return {wish.key, wish.budget.value()}; }
  void Forget(Time now);

  const ResolverOptions options_;
  TokenBucket bucket_;
  std::deque<ResolveWish> urgent_;
  std::deque<ResolveWish> upgrades_;
  size_t asked_ = 0;                // that wait with costs of their own
  std::map<Question, Time> known_;  // waiting (Time::max()), or resting until
};

// Whether an older version of the solver has made what serves the budget, and nothing of `version` or a
// newer one has been held against it. Not where the entry is frozen. What is pinned stays: what comes
// of its upgrade waits in shadow, to be tried.
bool NeedsUpgrade(const PlanEntry& entry, Bytes budget, const std::string& version);

// One wish per budget that needs it.
std::vector<ResolveWish> UpgradesOf(const PlanKey& key, const PlanEntry& entry,
                                    const std::string& version);

// Thread-safe. One thread; the destructor waits for the solve that is under way.
class Resolver {
 public:
  // Solves, or has it done; may block for as long as that takes. False when there is nothing to solve:
  // that does not count towards the rate.
  using Solve = std::function<bool(const ResolveWish& wish)>;

  Resolver(const ResolverOptions& options, Solve solve);
  ~Resolver();

  // Never blocks for long. False as ResolveQueue::Add.
  bool Want(const ResolveWish& wish);

 private:
  void Run();

  const Solve solve_;
  std::mutex mutex_;
  std::condition_variable wake_;
  ResolveQueue queue_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_RESOLVER_H_
