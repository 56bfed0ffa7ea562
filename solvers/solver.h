// What every solver is: a chain and a budget in, a plan out.
#ifndef STOWAGE_SOLVERS_SOLVER_H_
#define STOWAGE_SOLVERS_SOLVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/plan.h"

namespace stowage {

// Tells a running solve to stop: by a flag that any thread may set, by a deadline, or both. The
// deadline may move while the solve runs, to a later time only.
// Thread-safe.
class StopToken {
 public:
  using Clock = std::chrono::steady_clock;

  StopToken() = default;  // without a deadline
  explicit StopToken(Clock::time_point deadline) : deadline_(deadline.time_since_epoch().count()) {}

  void RequestStop() { stopped_.store(true, std::memory_order_relaxed); }
  // No effect where the deadline is later already, or there is none.
  void ExtendDeadline(Clock::time_point deadline);
  bool deadline_passed() const {
    const Clock::rep deadline = deadline_.load(std::memory_order_relaxed);
    return deadline != kNone && Clock::now().time_since_epoch().count() >= deadline;
  }
  bool stop_requested() const { return stopped_.load(std::memory_order_relaxed); }
  // OK, CANCELLED or DEADLINE_EXCEEDED. Costs one clock read: solvers call it every few
  // milliseconds.
  absl::Status Check() const;

 private:
  static constexpr Clock::rep kNone = std::numeric_limits<Clock::rep>::max();

  std::atomic<bool> stopped_{false};
  std::atomic<Clock::rep> deadline_{kNone};
};

// Checks a token often enough (every few milliseconds) and no oftener: solvers report the steps of
// their innermost loops. Not thread-safe.
class StopPoll {
 public:
  explicit StopPoll(const StopToken* stop) : stop_(stop) {}
  absl::Status Spend(int64_t steps) {
    spent_ += steps;
    if (spent_ < kStepsPerCheck) return absl::OkStatus();
    spent_ = 0;
    return stop_ == nullptr ? absl::OkStatus() : stop_->Check();
  }

 private:
  static constexpr int64_t kStepsPerCheck = 1 << 20;

  const StopToken* stop_;
  int64_t spent_ = kStepsPerCheck;  // a solve that is stopped already does nothing
};

struct SolveOptions {
  // Slots of a discretised table; 0 lets the solver choose.
  int64_t slots = 0;
  // Refuse (RESOURCE_EXHAUSTED) rather than use more memory than this for tables.
  Bytes table_limit{int64_t{4} << 30};
  int threads = 1;  // Threads that a solver may use; results do not depend on it.
  // The link to host memory, if plans may use it. Solvers that copy nothing do not look at it.
  std::optional<TransferModel> transfers;
  // Polled at least every 50 ms; may be null.
  const StopToken* stop = nullptr;
  // Called now and then with the share done, in [0, 1], on the solving thread; may be empty.
  std::function<void(double)> progress;
  // Of Solve: called on the solving thread whenever a search has found a schedule that fits and is
  // faster than all before, long before it ends; may be empty. Solvers that do not search have one
  // schedule, their answer.
  std::function<void(const Schedule&)> incumbent;
};

// INVALID_ARGUMENT unless slots are in [0, 1,000,000], there is a thread and the transfer model, if
// given, is valid.
absl::Status ValidateSolveOptions(const SolveOptions& options);

// RESOURCE_EXHAUSTED: what a solve that the machine has not the memory for ends with.
absl::Status SolveOutOfMemoryError();

struct SolverInfo {
  std::string name;            // "optimal_persistent"
  std::string description;     // one line
  std::string schedule_class;  // the class that it is optimal, or just valid, in
};

// Stateless and thread-safe: one object serves any number of concurrent solves.
class ChainSolver {
 public:
  virtual ~ChainSolver() = default;
  virtual const SolverInfo& info() const = 0;

  // Fills status, schedule, bounds.{proven_optimal, schedule_class, least_budget}, provenance.slots
  // and explanation; the planner adds the rest and lets the referee judge. least_budget may be 0
  // where everything fits: then it was not needed. Errors: CANCELLED, DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED, INVALID_ARGUMENT for options. An infeasible budget is a plan, not an error.
  virtual absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                                     const SolveOptions& options) const = 0;

  // All budgets at once: the points at which the solver's makespan changes, as far as its precision
  // goes; where they are too many to keep, less some that gain little (ChooseCompact in
  // solvers/plan/frontier.h): a budget may then get up to that share of the makespan more than from
  // Solve. What it has at a budget is valid there, and never slower than at a smaller one. The last
  // point is as fast as store-all (and is it, unless some recomputing costs no time), the first is
  // the least budget's (LeastBudget). Errors as for Solve.
  virtual absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                                 const SolveOptions& options) const = 0;

  // The smallest budget that Solve finds a schedule for, exactly; of the class named in info().
  virtual absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                            const SolveOptions& options) const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SOLVER_H_
