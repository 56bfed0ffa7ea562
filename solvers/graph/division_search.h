// The least checkpoints of a graph under a limit on its segments, found on its division tree: Feng
// & Huang 2018, algorithm 5.
//
// A node that fits the limit is not opened. A Branch or Rigid node that does not has all vertices
// that its children meet in for checkpoints; a Linear one has the ends of the children that do not
// fit, and between those what linear_checkpoints.h finds.
#ifndef STOWAGE_SOLVERS_GRAPH_DIVISION_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_DIVISION_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_costs.h"
#include "solvers/graph/division_tree.h"
#include "solvers/graph/linear_checkpoints.h"

namespace stowage {

struct LimitedSet {
  bool found = false;
  KeptBytes kept;
  int64_t largest = 0;  // segment; at most the limit

  int64_t objective() const { return kept.bytes + largest; }
};

// Keeps its arrays from one limit to the next. Not thread-safe.
class DivisionSearch {
 public:
  // All must outlive the search.
  DivisionSearch(const CheckpointGraph& graph, const DivisionTree& tree,
                 const DivisionCosts& costs);

  // The set of least bytes, and among those of fewest checkpoints, with no segment over the limit.
  // `checkpoints`, unless null, gets its vertices, rising. O(nodes opened and their children).
  LimitedSet Under(int64_t limit, std::vector<int>* checkpoints);

  // What the last search looked at.
  int64_t steps() const { return steps_; }

 private:
  void MakeStops();
  bool Opens(int n, int64_t limit) const {
    return costs_.must_open[static_cast<size_t>(n)] || costs_.whole[static_cast<size_t>(n)] > limit;
  }
  void Keep(int v);
  void OpenLinear(int n, int64_t limit);
  void SolveRun(const DivisionNode& node, size_t from, size_t to, int64_t limit);

  const CheckpointGraph& graph_;
  const DivisionTree& tree_;
  const DivisionCosts& costs_;
  std::vector<LinearStop> stops_;   // of all Linear nodes
  std::vector<size_t> first_stop_;  // by node
  LinearCheckpoints linear_;
  std::vector<int> open_;
  LimitedSet set_;
  std::vector<int>* checkpoints_ = nullptr;
  int64_t steps_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_DIVISION_SEARCH_H_
