// A graph without aliases (solvers/graph/fold.h) as flat arrays: what the search over compute orders
// reads millions of times. Immutable after construction. Internal to solvers/graph/budget.
//
// Vertices are positions in program order, sizes bytes, times ns.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_OP_GRAPH_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_OP_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "solvers/model/graph.h"
#include "solvers/plan/gradient_sums.h"

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
    bool backward_needs_output;
    bool recomputable;  // may run forward a second time
    bool ordered;       // its first run keeps its place among those of other such vertices
  };

  // `folded` must have no aliases; `sums` are those of the graph that it was folded from. O(V + E).
  OpGraph(const Graph& folded, GradientSums sums);
  explicit OpGraph(const Graph& folded) : OpGraph(folded, GradientSums(folded)) {}

  int size() const { return static_cast<int>(costs_.size()); }
  const Costs& costs(int v) const { return costs_[static_cast<size_t>(v)]; }
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
    return bytes <= 0 ? 0 : ((bytes - 1) >> unit_bits_) + 1;
  }

 private:
  std::vector<Costs> costs_;
  std::vector<Input> inputs_;
  std::vector<size_t> first_input_;
  std::vector<int> readers_;  // rising
  std::vector<size_t> first_reader_;
  GradientSums sums_;
  int64_t seed_gradients_ = 0;
  int64_t ideal_time_ = 0;
  int unit_bits_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_OP_GRAPH_H_
