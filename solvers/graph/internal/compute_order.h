// A graph without aliases (solvers/graph/fold.h) as flat arrays: what the search over compute orders
// reads millions of times. Immutable after construction.
//
// Vertices are positions in program order, sizes bytes, times ns.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_COMPUTE_ORDER_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_COMPUTE_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "solvers/graph/fold.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

class OpGraph {
 public:
  struct Input {
    int vertex;
    bool backward_needs;
  };

  // Everything of a vertex but its neighbours.
  struct Costs {
    int64_t output;
    int64_t extra;
    int64_t gradient;
    int64_t forward_time;
    int64_t saving_overhead;   // of a forward whose extras are used
    int64_t unsaved_overhead;  // of one whose extras are not
    int64_t staying_overhead;  // of one whose extras are those of a forward before it
    int64_t backward_overhead;
    bool stops;  // of a repeat for the extras alone, right before the backward: see stopped()
    bool backward_needs_output;
    bool recomputable;  // may run forward a second time
    bool ordered;       // its first run keeps its place among those of other such vertices
    bool result;        // of a compute DAG: held when the step ends
  };

  // Of a repeat that stops early, whose output is not made. Apart from the rest, which every evaluation reads.
  struct Stopped {
    int64_t time;
    int64_t overhead;  // beyond the extras
  };

  // `folded` must have no aliases; `sums` are those of the graph that it was folded from. O(V + E).
  OpGraph(const Graph& folded, GradientSums sums);
  explicit OpGraph(const Graph& folded) : OpGraph(folded, GradientSums(folded)) {}

  int size() const { return static_cast<int>(costs_.size()); }
  // False: a compute DAG. Its orders have forwards alone.
  bool has_backwards() const { return has_backwards_; }
  const Costs& costs(int v) const { return costs_[static_cast<size_t>(v)]; }
  // Of a vertex that stops.
  const Stopped& stopped(int v) const { return stopped_[static_cast<size_t>(v)]; }
  // Whether a repeat of any vertex may stop early.
  bool stops() const { return stops_; }
  absl::Span<const Input> inputs(int v) const {
    const size_t begin = first_input_[static_cast<size_t>(v)];
    return {inputs_.data() + begin, first_input_[static_cast<size_t>(v) + 1] - begin};
  }
  absl::Span<const int> readers(int v) const {
    const size_t begin = first_reader_[static_cast<size_t>(v)];
    return {readers_.data() + begin, first_reader_[static_cast<size_t>(v) + 1] - begin};
  }
  // In which order backwards have to run.
  const GradientSums& sums() const { return sums_; }
  size_t edges() const { return inputs_.size(); }
  // Gradients of the tensors that nobody reads: held from the first backward on.
  int64_t seed_gradients() const { return seed_gradients_; }
  int64_t ideal_time() const { return ideal_time_; }
  // What is over a target, in units of which no sum over an order overflows: bytes, unless the graph
  // has more than 256 GiB in all. Rounded up; 0 for what is not over.
  int64_t OverloadUnits(int64_t bytes) const {
    return (std::max<int64_t>(bytes, 0) + unit_mask_) >> unit_bits_;
  }

 private:
  std::vector<Costs> costs_;
  std::vector<Stopped> stopped_;
  bool stops_ = false;
  std::vector<Input> inputs_;
  std::vector<size_t> first_input_;
  std::vector<int> readers_;  // rising
  std::vector<size_t> first_reader_;
  GradientSums sums_;
  bool has_backwards_;
  int64_t seed_gradients_ = 0;
  int64_t ideal_time_ = 0;
  int unit_bits_ = 0;
  int64_t unit_mask_ = 0;  // a unit less one
};

// Forwards and backwards of a graph in the order they run, repeats among them: what a schedule is before its discards
// (algorithms.md). Any order in which first runs follow the inputs is valid. Costs are the evaluator's on a graph
// without aliases; the evaluator validates what leaves the solver.
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

// Forwards in program order, then backwards in reverse; of a compute DAG, every node once.
ComputeOrder StoreAllOrder(const OpGraph& graph);

// Whether gradients are added up as in plain training. Of an order with all backwards.
bool KeepsGradientSums(const OpGraph& graph, const ComputeOrder& order);

// As instructions on the same graph, without discards.
Schedule ToSchedule(const Graph& graph, const ComputeOrder& order);

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
    int to;    // index of the compute that uses it next; the number of computes for the step's end
    bool extras;
  };
  // A tensor is held from one compute to another.
  struct Life {
    int from;
    int to;
  };
  ComputeOrder order;                    // without what is not run
  std::vector<int64_t> running;          // memory while each compute runs
  std::vector<int64_t> held;             // before each compute, and when the last has run
  std::vector<Gap> gaps;                 // longer than nothing
  std::vector<std::vector<Life>> lives;  // of each vertex's output, last first
};

// Not thread-safe: holds scratch.
class OrderEvaluator {
 public:
  explicit OrderEvaluator(const OpGraph& graph);

  // O(computes + their edges).
  OrderCost Evaluate(const ComputeOrder& order, int64_t target);
  // The same; of `profile` only `running`, about the whole order: 0 where a compute is not run.
  OrderCost EvaluateWithRunning(const ComputeOrder& order, int64_t target, OrderProfile* profile);
  // The same; `profile` is about the order without what is not run.
  OrderCost EvaluateWithProfile(const ComputeOrder& order, int64_t target, OrderProfile* profile);

  // The order evaluated last, without the forwards that nobody uses. O(computes).
  ComputeOrder WithoutDead(const ComputeOrder& order) const;

  // Computes and edges evaluated so far: what a search spends.
  int64_t work() const { return work_; }

 private:
  // What a run notes beside its cost.
  enum class Notes { kNothing, kRunning, kProfile };

  // kStops: whether the graph may stop. Most do not, and searches spend their time here. Of `profile`, kRunning fills
  // `running` alone.
  template <Notes kNotes, bool kStops>
  OrderCost Run(const ComputeOrder& order, int64_t target, OrderProfile* profile);
  template <Notes kNotes>
  OrderCost Run(const ComputeOrder& order, int64_t target, OrderProfile* profile) {
    return graph_.stops() ? Run<kNotes, true>(order, target, profile)
                          : Run<kNotes, false>(order, target, profile);
  }
  void Prepare(const ComputeOrder& order);
  template <bool kStops>
  bool IsDead(const Compute& forward) const;

  const OpGraph& graph_;
  std::vector<int> next_use_;           // of the output; -1 if none
  std::vector<int> extra_use_;          // of the extras
  std::vector<int> last_use_;           // of the output's life
  std::vector<int> runs_;               // forwards in the order not passed yet
  std::vector<bool> live_;              // a later forward runs
  std::vector<bool> stopped_;           // a later forward stops early
  std::vector<int64_t> new_gradients_;  // by compute
  std::vector<bool> has_gradient_;
  std::vector<bool> dead_;  // by compute
  int first_backward_ = 0;
  int64_t work_ = 0;
};

// Compute orders of a graph without aliases as schedules of the graph that it was folded from.
// Immutable; the folded graph outlives it.
class UnfoldedOrders {
 public:
  // `folded` is what FoldAliases made of the instance's graph. O(V + E).
  UnfoldedOrders(const Instance& instance, const FoldedGraph& folded)
      : evaluator_(instance.WithLink(std::nullopt)), folded_(folded), sums_(instance.graph()) {}

  // Whether the graph has aliases: what is proven of the folded graph is then no proof of this one.
  bool IsFolded() const { return folded_.graph.size() != graph().size(); }

  // The order's schedule, with its discards. Nothing where the order is none of the graph's: a value
  // that is written over in place before all have read it, or the gradient of a view among others that
  // a tensor adds up in another order. O((V + E + computes) log computes).
  std::optional<Schedule> ScheduleOf(const ComputeOrder& order) const;

 private:
  const Graph& graph() const { return evaluator_.instance().graph(); }

  const Evaluator evaluator_;
  const FoldedGraph& folded_;
  const GradientSums sums_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_COMPUTE_ORDER_H_
