// Forwards and backwards of a graph in the order they run, repeats among them: what a schedule is
// before its discards. Everything else follows: a tensor is held from the forward that makes it to
// the last use before the next forward that makes it again, and a repeated forward that nobody uses
// is not run. Hence any order in which first runs follow the inputs is valid, and one may be changed
// freely: take out a repeat, and the tensor is held in between; put one in, and it is dropped.
//
// Costs are the graph referee's (solvers/plan/graph_simulate.h) on a graph without aliases; the
// referee judges again whatever leaves the solver. Internal to solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_COMPUTE_ORDER_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_COMPUTE_ORDER_H_

#include <cstdint>
#include <vector>

#include "solvers/graph/budget/op_graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

struct Compute {
  int vertex;
  bool backward;
  // Of a forward: it makes the output alone, and the extras are still those of one before it. Pays
  // only where a forward that saves extras has the larger overhead.
  bool extras_stay = false;
  friend bool operator==(const Compute& a, const Compute& b) {
    return a.vertex == b.vertex && a.backward == b.backward && a.extras_stay == b.extras_stay;
  }
};
using ComputeOrder = std::vector<Compute>;

// Forwards in program order, then backwards in reverse.
ComputeOrder StoreAllOrder(const OpGraph& graph);

// Whether gradients are added up as in plain training. Of an order with all backwards.
bool KeepsGradientSums(const OpGraph& graph, const ComputeOrder& order);

// As instructions on the same graph, without discards.
Schedule ToSchedule(const ComputeOrder& order);

struct OrderCost {
  int64_t peak = 0;
  int64_t forward_time = 0;  // of all forwards that run
  int64_t overload = 0;      // OpGraph::OverloadUnits over the target, summed over the computes
};

// What an evaluation found out about every compute and every tensor.
struct OrderProfile {
  // A tensor, or the extras of an op, waits between two uses, neither of which lies in between.
  struct Gap {
    int vertex;
    int from;  // index of the compute that made or used it
    int to;    // index of the compute that uses it next
    bool extras;
  };
  // A tensor is held from one compute to another.
  struct Life {
    int from;
    int to;
  };
  ComputeOrder order;                    // without what is not run
  std::vector<int64_t> running;          // memory while each compute runs
  std::vector<Gap> gaps;                 // longer than nothing
  std::vector<std::vector<Life>> lives;  // of each vertex's output, last first
};

// Not thread-safe: holds scratch.
class OrderEvaluator {
 public:
  explicit OrderEvaluator(const OpGraph& graph);

  // O(computes + their edges).
  OrderCost Evaluate(const ComputeOrder& order, int64_t target);
  // The same; `profile` is about the order without what is not run.
  OrderCost EvaluateWithProfile(const ComputeOrder& order, int64_t target, OrderProfile* profile);

  // Computes and edges evaluated so far: what a search spends.
  int64_t work() const { return work_; }

 private:
  template <bool kProfile>
  OrderCost Run(const ComputeOrder& order, int64_t target, OrderProfile* profile);
  void Prepare(const ComputeOrder& order);
  bool IsDead(const Compute& forward) const;

  const OpGraph& graph_;
  std::vector<int> next_use_;           // of the output; -1 if none
  std::vector<int> extra_use_;          // of the extras
  std::vector<int> last_use_;           // of the output's life
  std::vector<int> runs_;               // forwards in the order not passed yet
  std::vector<bool> live_;              // a later forward runs
  std::vector<int64_t> new_gradients_;  // by compute
  std::vector<bool> has_gradient_;
  std::vector<bool> dead_;  // by compute
  int first_backward_ = 0;
  int64_t work_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_COMPUTE_ORDER_H_
