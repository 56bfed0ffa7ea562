// What is planned: a chain, a graph or a compute DAG, and the link to host memory that its plans may use, if any.
//
// What every solver, the evaluator and the bounds need of it, plain training's run, is computed once and held
// here. Copies share it: they cost a reference count. Thread-safe; nothing that is seen of it changes.
#ifndef STOWAGE_SOLVERS_SCHEDULE_INSTANCE_H_
#define STOWAGE_SOLVERS_SCHEDULE_INSTANCE_H_

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/problem.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

class RecomputeCurve;

// MakespanLowerBound and StrongestMakespanLowerBound (lower_bound.h).
enum class BoundKind { kFast, kStrongest };

class Instance {
 public:
  // Without a link no transfer is valid. Implicit: a chain, a graph or either is an instance without one.
  Instance(Problem problem, std::optional<TransferModel> link = std::nullopt);
  Instance(Chain chain, std::optional<TransferModel> link = std::nullopt);
  Instance(Graph graph, std::optional<TransferModel> link = std::nullopt);
  // With the link of the profile's device, if there is one.
  Instance(const Profile& profile);

  const Problem& problem() const { return shared_->problem; }
  ProblemKind kind() const { return KindOf(problem()); }
  // A graph or a compute DAG.
  bool is_graph() const { return std::holds_alternative<Graph>(problem()); }
  // Of an instance of that kind only.
  const Chain& chain() const { return std::get<Chain>(problem()); }
  const Graph& graph() const { return std::get<Graph>(problem()); }

  const std::optional<TransferModel>& link() const { return link_; }
  // OK, or what ValidateTransferModel says of the link.
  absl::Status CheckLink() const;
  // The same problem with another link, or with none; shares what is computed of it.
  Instance WithLink(std::optional<TransferModel> link) const;
  // The same for the length of a solve: it and its copies, with whatever link, remember each moment of plain training,
  // replayed here, and every lower bound, so that neither is computed again. Some 60 bytes an instruction, 150 a
  // bound, and 400 a vertex or stage once a strongest bound was asked for: not for instances that are kept. Itself if it remembers already.
  Instance Remembering() const;

  // Sum of all forward and backward times: the step without a budget.
  Nanos ideal_time() const { return IdealTime(problem()); }

  // Plain training: every forward keeps all, then every backward. Made at each call: O(L), O(V + E).
  Schedule store_all_schedule() const;
  // What it takes, replayed at the first call. INVALID_ARGUMENT made by FieldError for a graph on which it is no schedule: a vertex in
  // place writes over what a backward needs. No order of such a graph is planned.
  const absl::StatusOr<Simulation>& store_all() const;

 private:
  friend class Evaluator;
  friend Nanos MakespanLowerBound(const Instance& instance, Bytes budget);
  friend Nanos StrongestMakespanLowerBound(const Instance& instance, Bytes budget);

  // Of all instances of one problem.
  struct Shared {
    explicit Shared(Problem problem_in) : problem(std::move(problem_in)) {}
    const Problem problem;
    mutable std::once_flag once;
    mutable absl::StatusOr<Simulation> store_all;  // after `once`
  };
  // Of one that remembers, and its copies.
  class Memo;

  Instance(std::shared_ptr<const Shared> shared, std::optional<TransferModel> link,
           std::shared_ptr<Memo> memo);

  void SetStoreAll(const absl::StatusOr<Simulation>& replayed) const;
  // Whether the schedule is plain training and remembered; then its run, and its timeline unless that is null.
  std::optional<Simulation> Recall(const Schedule& schedule,
                                   std::vector<TimelinePoint>* timeline) const;
  // The bound for the link and budget: remembered, or by `compute`.
  Nanos Bound(BoundKind kind, Bytes budget, absl::FunctionRef<Nanos()> compute) const;
  // Remembered, or made now.
  std::shared_ptr<const RecomputeCurve> Curve() const;

  std::shared_ptr<const Shared> shared_;
  std::optional<TransferModel> link_;
  std::shared_ptr<Memo> memo_;  // null: it does not remember
};

// Of a profile; without a link if plans must copy nothing.
Instance InstanceOf(const Profile& profile, bool recompute_only);

// The schedule of plain training: every forward keeps all, then every backward. Here, beside the
// evaluator, because budgets and bounds are stated relative to it.
Schedule StoreAllSchedule(const Chain& chain);

// On a graph: forwards in program order, backwards in reverse, everything dropped after its last use. The
// evaluator refuses it only where a backward needs what has been written over in place, which
// training frameworks refuse too. On a compute DAG: every node once, in program order. O(V + E).
Schedule StoreAllSchedule(const Graph& graph);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INSTANCE_H_
