// The store as planning sees it: searches that are judged and counted, and changes of one entry at a
// time.
#ifndef STOWAGE_SERVER_SERVICE_PLAN_CACHE_H_
#define STOWAGE_SERVER_SERVICE_PLAN_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/plan_lookup.h"
#include "server/entries/plan_record.h"
#include "server/entries/planning_problem.h"
#include "server/entries/tenant_scope.h"
#include "server/observe/server_metrics.h"
#include "server/store/plan_store.h"

namespace stowage {

struct CachedPlan {
  std::shared_ptr<const Plan> plan;  // its own budget may differ from the one below
  Bytes budget;                      // what was asked for, in bytes
  PlanKey key;
  bool profile_wanted = false;  // as reports.h says of the entry
};

// Whether the calling thread may wait for a slow store.
enum class MayWait { kNo, kYes };

// Thread-safe.
class PlanCache {
 public:
  // Told of every plan that Find returns, on its thread: must be quick.
  using Listener = std::function<void(const PlanningProblem& problem, const PlanEntry& entry,
                                      Bytes budget, const Found& found)>;
  // The same for FirstServing.
  using KeyListener =
      std::function<void(const PlanKey& key, const PlanEntry& entry, const Plan& plan)>;

  // Both pointers outlive this object, and so does what the listeners use.
  PlanCache(PlanStore* store, ServerMetrics* metrics, Listener listener, KeyListener key_listener)
      : store_(store),
        metrics_(metrics),
        listener_(std::move(listener)),
        key_listener_(std::move(key_listener)) {}

  // The first of the keys, from `*next` on, whose entry the scope sees, with a schedule that serves
  // the budget; NOT_FOUND without one. Nothing, with `*next` at the key in question: only a thread that may wait can tell.
  std::optional<absl::StatusOr<CachedPlan>> FirstServing(const std::vector<PlanKey>& keys,
                                                         const Budget& budget,
                                                         const TenantScope& scope, MayWait wait,
                                                         size_t* next) const;

  // The best plan under the caller's costs, or an empty one inside. Nothing: as above.
  std::optional<std::optional<Plan>> Find(const PlanningProblem& problem, Bytes budget,
                                          Access access, MayWait wait) const;
  // What "least" is for the caller, as far as the entry says. Nothing: as above.
  std::optional<std::optional<Bytes>> FindLeast(const PlanningProblem& problem, MayWait wait) const;

  // All budgets under the caller's costs, or null inside. Nothing: as above.
  std::optional<std::shared_ptr<const Frontier>> FindFrontier(const PlanningProblem& problem,
                                                              Access access, MayWait wait) const;

  // To be asked before a solve, and told when what it found is kept: the first generation of the entry
  // that it begins where there is none.
  int64_t Begin(const PlanKey& key) const;
  // Whether the key's plans were deleted since `begun`. Never waits.
  bool DeletedSince(const PlanKey& key, int64_t begun) const;
  // Keeps what was solved for all budgets, where the entry's reference is about the caller's costs, and
  // the key's plans were not deleted since `begun`.
  void KeepFrontier(const PlanningProblem& problem, const std::shared_ptr<const Frontier>& frontier,
                    int64_t begun);
  // Keeps a solved plan as Record says, unless the key's plans were deleted since `begun`.
  void Keep(SolvedPlan* solved, int64_t begun);

 private:
  std::optional<std::shared_ptr<const PlanEntry>> Get(const PlanKey& key, Access access,
                                                      MayWait wait) const;

  // Replaces the entry by what `change` makes of it (null: there is none for these canonical bytes);
  // nothing changes where that is nothing, or a deletion has come after `begun`.
  void Change(const PlanningProblem& problem, int64_t begun,
              const std::function<std::optional<PlanEntry>(const PlanEntry*)>& change);

  PlanStore* const store_;
  ServerMetrics* const metrics_;
  const Listener listener_;
  const KeyListener key_listener_;
  // One change of an entry at a time, so that none is lost; entries of other stripes do not wait for a
  // slow store.
  std::array<std::mutex, 64> record_mutexes_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_PLAN_CACHE_H_
