// What an agent knows of the shapes of batches that it has met, and the plans for them. Bounded: the
// shape that was longest not met goes.
#ifndef STOWAGE_CLIENT_AGENT_PLAN_TABLE_H_
#define STOWAGE_CLIENT_AGENT_PLAN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "client/agent/adopted_plan.h"
#include "client/agent/batch.h"
#include "client/agent/device_link.h"
#include "client/agent/step_watch.h"
#include "client/agent/trained_model.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"

namespace stowage {

// Why and within what a shape is to be planned again.
struct PendingReplan {
  ReplanReason reason;
  Bytes budget;
  Bytes host_memory = kAllHostMemory;  // that plans may use from then on; 0: they copy nothing
};

struct PlannedShape {
  PlannedShape(BatchSignature batch, int64_t watched)
      : signature(std::move(batch)), watch(watched) {}

  // Whether steps by its plan do, until it is replaced.
  bool fails() const { return pending && StopsSteps(pending->reason); }

  bool has_times() const { return profile && profile->cost_source == CostSource::kMeasured; }
  // Of a shape that was planned for.
  const Profile& known() const { return profile ? *profile : *shapes; }

  BatchSignature signature;
  std::optional<Profile> profile;      // absent until it is measured
  std::optional<Profile> shapes;       // told from shapes; absent when it is measured
  std::optional<AdoptedPlan> adopted;  // absent until it was planned
  std::unique_ptr<PlannedStep> step;   // null where there is no plan to step by
  StepWatch watch;                     // steps by `step`; in shadow mode plain ones
  bool shadowed = false;               // it was tried to plan it for shadow mode
  bool reported = false;
  Bytes reserved_peak;           // of the latest step by `step`, see StepMemory
  int64_t served_by_larger = 0;  // steps
  std::optional<PendingReplan> pending;
  bool alone = false;     // this rank's plan, and of no other
  int replans = 0;        // because of drift
  int smaller_plans = 0;  // because memory ran out
};

// Not thread-safe. Pointers hold until Add.
class PlanTable {
 public:
  // `watched` as StepWatch takes it; both at least 1.
  PlanTable(int64_t capacity, int64_t watched)
      : capacity_(static_cast<size_t>(capacity)), watched_(watched) {}

  // Null if it is not known. O(capacity).
  PlannedShape* Find(const BatchSignature& signature);
  PlannedShape* FindOrAdd(const BatchSignature& signature);

  // The shape that this one fits into and that has a plan to step by, `fails`: one that is to be replaced because steps by it fail, else
  // none of those; of several the one that takes the least memory. Null if there is none. Not the shape itself.
  PlannedShape* Larger(const BatchSignature& signature, bool fails = false);

  // All that is pending. O(capacity).
  std::vector<const PendingReplan*> Pending() const;

  // Those whose plans take more host memory than that and are not known to fail. O(capacity).
  std::vector<PlannedShape*> BeyondHostMemory(Bytes limit);

  int64_t evicted() const { return evicted_; }
  size_t size() const { return shapes_.size(); }

 private:
  size_t capacity_;
  int64_t watched_;
  int64_t evicted_ = 0;
  std::list<PlannedShape> shapes_;  // the latest first
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_PLAN_TABLE_H_
