// Tests count by this what an instance has computed: it is told of every replay and every lower bound that is not
// looked up. Nobody listens otherwise.
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_COMPUTING_OBSERVER_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_COMPUTING_OBSERVER_H_

#include <atomic>

#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Called on the thread that computes: thread-safe where several do.
class ComputingObserver {
 public:
  virtual ~ComputingObserver() = default;
  virtual void OnReplay(const Instance& instance, const Schedule& schedule) = 0;
  virtual void OnBound(const Instance& instance, BoundKind kind, Bytes budget) = 0;
};

// Null: nobody. Set while nothing is computed.
inline std::atomic<ComputingObserver*> computing_observer{nullptr};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_COMPUTING_OBSERVER_H_
