// Changes of a compute order that trade time for memory and back, each judged by replaying it.
// Internal to solvers/graph/budget.
//
//   Evict    drops a tensor that waits where the order is over a target, and computes it again before
//            its next use: the one with the least time per byte and compute that it takes off the
//            overload, again and again until nothing is over
//   Retain   takes out repeats while nothing gets over the target: those with the most time per byte
//            held first
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_MOVES_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_MOVES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "solvers/graph/budget/compute_order.h"
#include "solvers/solver.h"

namespace stowage {

// Not thread-safe.
class OrderMoves {
 public:
  OrderMoves(const OpGraph& graph, const StopToken* stop);

  // Until the peak is within the target or nothing helps, or `work_limit` is spent; the order is as
  // far as it came. CANCELLED, DEADLINE_EXCEEDED. Same for the others.
  absl::Status Evict(int64_t target, int64_t work_limit, ComputeOrder* order);
  absl::Status Retain(int64_t target, int64_t work_limit, ComputeOrder* order);

  OrderCost Cost(const ComputeOrder& order, int64_t target) {
    return evaluator_.Evaluate(order, target);
  }
  int64_t work() const { return evaluator_.work(); }

 private:
  // A forward that could be put in before a compute.
  struct Candidate {
    int vertex;
    int before;   // index in the profile's order
    double gain;  // at most this is taken off the overload
    double rate;  // gain by time
  };

  void SumOverload(int64_t target);
  // Bytes that leave the overload when so many are dropped between two computes; at most.
  double GainBetween(int from, int to, int64_t bytes) const;
  void FindCandidates();
  bool IsLive(int vertex, int at) const;
  // What must be computed before `at` for `vertex` to be: itself, and with it the inputs that are
  // not held then, in program order.
  void FindClosure(int vertex, int at, std::vector<int>* closure);
  void Insert(int at, const std::vector<int>& vertices, bool instead_of_next,
              ComputeOrder* order) const;
  bool EvictOnce(int64_t target, OrderCost* cost, ComputeOrder* order);
  absl::Status Poll();

  const OpGraph& graph_;
  OrderEvaluator evaluator_;
  StopPoll poll_;
  int64_t polled_ = 0;
  OrderProfile profile_;
  std::vector<int64_t> over_sum_;  // prefix sums of the overload
  std::vector<int> over_count_;    // and of the computes that are over
  std::vector<Candidate> candidates_;
  std::vector<bool> in_closure_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_MOVES_H_
