// Who of several servers solves: cluster-wide single flight.
//
// A lease saves work, it protects nothing: two servers that both solve, because one of them was
// held up for longer than its lease, both end with a plan that the evaluator accepts.
#ifndef STOWAGE_SERVER_STORE_SOLVE_LEASE_H_
#define STOWAGE_SERVER_STORE_SOLVE_LEASE_H_

#include <memory>
#include <optional>

#include "solvers/model/canonical.h"
#include "solvers/model/units.h"

namespace stowage {

// What is solved. No budget: all of them at once.
struct SolveQuestion {
  PlanKey key;
  std::optional<Bytes> budget;
};

// Held, and kept alive, until it is destroyed.
class HeldLease {
 public:
  virtual ~HeldLease() = default;
};

enum class LeaseState {
  kAlone,    // nobody else could be solving it
  kGranted,  // ours, while `held` lives
  kTaken,    // another server solves it
  kFailed,   // nobody can say
};

struct LeaseAnswer {
  LeaseState state = LeaseState::kFailed;
  std::unique_ptr<HeldLease> held;
};

// Thread-safe.
class SolveLease {
 public:
  virtual ~SolveLease() = default;
  // Returns at once, or nearly: it does not wait for whoever holds it.
  virtual LeaseAnswer Acquire(const SolveQuestion& question) = 0;
};

// Of a server that shares its store with none.
class NoLease final : public SolveLease {
 public:
  LeaseAnswer Acquire(const SolveQuestion&) override { return {LeaseState::kAlone, nullptr}; }
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_SOLVE_LEASE_H_
