// Compute orders whose repeats are chosen by prices of memory: the bound's choice between holding and repeating
// (solvers/schedule/algorithms.md), at all time steps at once. Internal to solvers/graph.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_PRICED_ORDERS_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_PRICED_ORDERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/solver.h"

namespace stowage {

// A minimum cut between node 0 and node 1, over and over with other capacities. Dinic's algorithm.
class RepeatedCut {
 public:
  explicit RepeatedCut(int nodes) : first_(static_cast<size_t>(nodes), -1) {}

  static constexpr int kSource = 0, kSink = 1;
  static constexpr int64_t kUncut = int64_t{1} << 60;

  // Its index. Arcs have no capacity until Set.
  int AddArc(int from, int to);
  // All capacities below kUncut must add up to less than it.
  void Set(int arc, int64_t capacity) {
    arcs_[static_cast<size_t>(arc)].residual = capacity;
    arcs_[static_cast<size_t>(arc) ^ 1].residual = 0;
  }
  // Afterwards OnSourceSide tells the smallest minimum cut. Every arc must have been set since the last time. CANCELLED,
  // DEADLINE_EXCEEDED.
  absl::Status Solve(StopPoll* poll);
  bool OnSourceSide(int node) const { return depth_[static_cast<size_t>(node)] >= 0; }

  // Arcs looked at so far.
  int64_t looked_at() const { return looked_at_; }

 private:
  struct Arc {
    int to;
    int next;  // of the same node
    int64_t residual;
  };

  bool Layer();
  void Block();

  std::vector<Arc> arcs_;
  std::vector<int> first_, next_, depth_, queue_, path_;
  int64_t looked_at_ = 0;
};

// Orders in which everything runs forward, then backward in reverse program order, and what a backward needs and is not
// held runs again right before it. Which vertices run again is what costs least where a byte that is held has a price
// at each backward: a minimum cut (algorithms.md). Prices rise where an order needs more than the target, and fall
// elsewhere (subgradients). Of graphs with backwards. Not thread-safe; deterministic.
class PricedOrders {
 public:
  PricedOrders(const OpGraph& graph, const StopToken* stop);

  // The next order for the target, bytes, with its cost, and the prices after it. `known_time`: of all forwards, of the
  // fastest order within the target, or more. One minimum cut of three nodes for each vertex, and a replay. CANCELLED,
  // DEADLINE_EXCEEDED.
  absl::StatusOr<OrderCost> Next(int64_t target, int64_t known_time, ComputeOrder* order);
  // The order that Next made last, without the forwards that nobody uses.
  ComputeOrder WithoutDead(const ComputeOrder& order) const {
    return evaluator_.WithoutDead(order);
  }

  // Computes and edges replayed so far, and what else was looked at, as far as it takes as long.
  int64_t work() const;

 private:
  // Time steps are backwards with the repeats before them, numbered as they come; the first one has all first forwards.
  int StepOf(int vertex) const { return graph_.size() - 1 - vertex; }
  // How much of a vertex runs again.
  enum class Again : char { kNot, kForExtras, kWhole };

  // Nodes of a vertex: a repeat needs its output, and no backward does; a repeat makes it; there is a repeat.
  static int NeededByRepeat(int v) { return 3 * v + 2; }
  static int MakesOutput(int v) { return 3 * v + 3; }
  static int Repeats(int v) { return 3 * v + 4; }
  struct Arcs {
    int held, output_of_repeat, output_time, repeat_time, extras_held;
    std::vector<int> inputs;
  };

  void AddArcs();
  void FindSteps();
  // Of what is held up to a step, or a point between it and the next.
  double PriceUntil(double step) const;
  absl::Status Choose();
  void NoteReads();
  void MakeOrder(bool may_drop, ComputeOrder* order) const;
  void Reprice(int64_t target, int64_t known_time, const OrderCost& cost,
               const ComputeOrder& order);

  const OpGraph& graph_;
  OrderEvaluator evaluator_;
  StopPoll poll_;
  RepeatedCut cut_;
  std::vector<Arcs> arcs_;
  std::vector<bool> needed_;     // by a backward
  std::vector<int> first_need_;  // the first step that may need the output
  std::vector<double>
      read_at_;  // the first step that reads the output if the repeats are as they were
  std::vector<double>
      weight_;  // of a vertex's bytes: close to 1, so that equal ops do not all change at once
  std::vector<double> prices_;        // by step: ns of a byte
  std::vector<double> price_before_;  // by step: of all steps before it
  std::vector<Again> again_;
  OrderProfile profile_;
  bool drop_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_PRICED_ORDERS_H_
