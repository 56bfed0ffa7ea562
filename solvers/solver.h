// What every solver is: an instance and a budget in, a plan out. A whole program:
//
//   #include <chrono>
//
//   #include "solvers/registry.h"
//   #include "solvers/solver.h"
//
//   int main() {
//     using namespace stowage;
//     ChainSpec spec;
//     spec.stages.resize(5);
//     for (Stage& stage : spec.stages) stage.output = stage.saved = Bytes(100);
//     const Instance instance(*Chain::Create(spec));
//     const StopToken stop(StopToken::Clock::now() + std::chrono::seconds(1));
//     SolveOptions options;
//     options.stop = &stop;
//     for (const Solver* solver : SolversOf(instance.kind())) {
//       const absl::StatusOr<Bytes> least = solver->LeastBudget(instance, options);
//       if (!least.ok()) return 1;
//       const absl::StatusOr<Plan> plan = solver->Solve(instance, *least, options);
//       if (!plan.ok() || plan->status != PlanStatus::kFound) return 1;
//       const absl::StatusOr<Frontier> frontier = solver->SolveFrontier(instance, options);
//       if (!frontier.ok() || frontier->At(*least) == nullptr) return 1;
//     }
//   }
#ifndef STOWAGE_SOLVERS_SOLVER_H_
#define STOWAGE_SOLVERS_SOLVER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/base/stop_token.h"
#include "solvers/model/units.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct SolveOptions {
  // Slots of a discretised table; 0 lets the solver choose.
  int64_t slots = 0;
  // Refuse (RESOURCE_EXHAUSTED) rather than use more memory than this for tables. The points of a frontier, which are
  // the answer, may take as much again (SolveContext::frontier_limit).
  Bytes table_limit{int64_t{4} << 30};
  int threads = 1;  // Threads that a solver may use; results do not depend on it.
  // Polled at least every 50 ms; may be null.
  const StopToken* stop = nullptr;
  // Called now and then with the share done, in [0, 1], on the solving thread; may be empty.
  std::function<void(double)> progress;
  // Of Solve: called on the solving thread whenever a search has found a schedule that fits and is
  // faster than all before, long before it ends; may be empty. Solvers that do not search have one
  // schedule, their answer.
  std::function<void(const Schedule&)> incumbent;
};

// What a solve has: its options, checked once; how far it is; who hears of its schedules; what memory its tables may
// take. Parts of a solve have contexts of their own, made from its: cheap to copy, of one thread.
class SolveContext {
 public:
  // Implicit: options are a solve of their own.
  SolveContext(SolveOptions options = {});  // NOLINT(google-explicit-constructor)

  // OK, or INVALID_ARGUMENT unless slots are in [0, kSlotLimit] and there is a thread.
  const absl::Status& status() const { return solve_->status; }
  const StopToken* stop() const { return solve_->options.stop; }
  // OK, CANCELLED or DEADLINE_EXCEEDED, as StopToken::Check().
  absl::Status CheckStop() const;
  int threads() const { return solve_->options.threads; }
  int64_t slots() const { return slots_; }
  // What tables may take.
  Bytes memory() const { return memory_; }
  // What the points of a frontier may take, beside tables: as much as these, but at least 16 MiB, because a solve that
  // may have no table still has an answer. Where they would take more, those that gain least go (FrontierBuilder).
  Bytes frontier_limit() const { return std::max(solve_->options.table_limit, Bytes(16 << 20)); }
  // Hears of every schedule that is the fastest so far; may be empty.
  const std::function<void(const Schedule&)>& incumbent() const;
  // The share of this part that is done, in [0, 1]. Whoever listens hears of the whole, and only of what rises.
  void Report(double share) const;

  // A part that does the shares [from, to] of this one.
  SolveContext Part(double from, double to) const;
  // A part whose progress, and whose schedules, are nobody's; or whose schedules alone.
  SolveContext Quiet() const;
  SolveContext Silent() const;
  SolveContext WithSlots(int64_t slots) const;
  // Beside tables that are there already.
  SolveContext WithMemory(Bytes memory) const;

 private:
  // Of all parts.
  struct Solve {
    SolveOptions options;
    absl::Status status;
    double reported = -1.0;
  };

  std::shared_ptr<Solve> solve_;
  int64_t slots_;
  Bytes memory_;
  double from_ = 0.0;
  double to_ = 1.0;
  bool reports_ = true;
  bool tells_ = true;
};

// Which instances a deadline that passes leaves a plan for: Solve then answers with the best schedule so far, once
// there is one, and SolveFrontier with the points so far, instead of DEADLINE_EXCEEDED.
enum class Anytime { kNever, kWithLink, kAlways };

// What the schedules of a solver may do: SolverInfo::schedule_class for programs.
enum class ScheduleClass {
  kPlainTraining,
  kSegments,       // stretches between what is kept run again as a whole
  kCheckpoints,    // nothing but inputs of stages is kept where anything runs again
  kPersistent,     // what is kept stays until its backward
  kNonPersistent,  // may go before and be made again
  kOffloading,     // nothing runs again; tensors may go to the host
  kRecomputing,    // whatever copies nothing to the host
  kAll,
};

struct SolverInfo {
  std::string name;         // "optimal_persistent"
  std::string description;  // one line
  // The class that it is optimal, or just valid, in; of chains where it takes both kinds.
  std::string schedule_class;
  ScheduleClass exact_class = ScheduleClass::kAll;  // the same: proven_optimal is the fastest of it
  bool chains = true;                               // takes instances that are chains
  bool graphs = false;                              // takes instances that are graphs
  bool copies =
      false;  // uses the instance's link to host memory; others plan as if there were none
  Anytime anytime = Anytime::kNever;
  bool dags = false;  // takes instances that are compute DAGs
  // Of chains: finds a schedule within every budget that one of the class fits in.
  bool complete = true;
  // Plans graphs as chains, cut at their splitting vertices.
  bool cuts_graphs = false;

  bool IsAnytimeFor(const Instance& instance) const {
    return anytime == Anytime::kAlways || (anytime == Anytime::kWithLink && instance.link() &&
                                           instance.link()->host_memory > Bytes(0));
  }
  bool Takes(ProblemKind kind) const {
    return kind == ProblemKind::kChain ? chains : kind == ProblemKind::kGraph ? graphs : dags;
  }
};

// Stateless and thread-safe: one object serves any number of concurrent solves.
//
// Errors of all three: INVALID_ARGUMENT for options, for an instance whose kind the solver does not take or whose
// link is not valid, and for a graph on which plain training is not valid (Instance::store_all); CANCELLED,
// DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED where the problem is too large for the solver or for memory; INTERNAL for any
// other exception, on whichever thread.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual const SolverInfo& info() const = 0;

  // A plan whose schedule ValidatePlan has accepted within the budget, with its prediction and bounds. An infeasible
  // budget is a plan, not an error: PROVEN_INFEASIBLE only below a proven need, which is bounds.least_budget then and,
  // of graphs, may be less than what any schedule fits in. Else that is the smallest budget that the solver found a
  // schedule for, or 0 where it is not known: where everything fits it is not looked for.
  // More budget is never slower, and finds a schedule where less does, unless a deadline cuts a search short.
  absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                             const SolveContext& context) const;

  // All budgets at once: the points at which the solver's makespan changes, as far as its precision goes; where they
  // are too many to keep, less some that gain little (ChooseCompact in solvers/schedule/frontier.h): a budget may then get
  // up to that share of the makespan more than from Solve. What it has at a budget is valid there, and never slower
  // than at a smaller one. The last point is as fast as store-all. info().least_budget is proven: nothing of the class
  // needs less. Of chains the first point is the least budget's (LeastBudget). A deadline that cuts the search of an
  // anytime solver short leaves the points so far, at least store-all's: info().search_complete is false then.
  absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                         const SolveContext& context) const;

  // The smallest budget that Solve finds a schedule for; of chains, where info().complete, that of the class.
  absl::StatusOr<Bytes> LeastBudget(const Instance& instance, const SolveContext& context) const;

 private:
  // What solvers implement. Instance and options are checked before, exceptions are caught, and the plan is
  // validated afterwards. DoSolve fills status, schedule, bounds.{proven_optimal, schedule_class, least_budget},
  // provenance.slots, explanation; provenance.solver only where another solver made the plan.
  virtual absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                                       const SolveContext& context) const = 0;
  virtual absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                                   const SolveContext& context) const = 0;
  virtual absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                              const SolveContext& context) const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SOLVER_H_
