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
#include <queue>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_costs.h"
#include "solvers/graph/division_tree.h"
#include "solvers/graph/linear_checkpoints.h"
#include "solvers/solver.h"

namespace stowage {

struct LimitedSet {
  KeptBytes kept;
  int64_t largest = 0;  // segment, branches between the same two checkpoints counted as one

  int64_t objective() const { return kept.bytes + largest; }
};

// Keeps what it found under a limit for the next one. Not thread-safe.
class DivisionSearch {
 public:
  // All must outlive the search.
  DivisionSearch(const CheckpointGraph& graph, const DivisionTree& tree, const DivisionCosts& costs,
                 StopPoll* poll);

  // The set of least bytes, and among those of fewest checkpoints, with no segment over the limit.
  // A limit below the last one costs O(log V) for every node that opens and every open node that
  // has a segment over the limit, and O(children) for each that opens or is Linear; any other limit
  // starts anew. Fails as the token says.
  absl::StatusOr<LimitedSet> Under(int64_t limit);
  // That set, rising. Starts anew: O(nodes open and their children + V log V).
  absl::StatusOr<std::vector<int>> Checkpoints(int64_t limit);

  // Nodes looked at under the last limit.
  int64_t steps() const { return steps_; }

 private:
  struct Segment {
    int64_t cost;
    int node;  // open, and the largest segment within it has this cost

    friend bool operator<(const Segment& a, const Segment& b) { return a.cost < b.cost; }
  };

  // What every limit needs, in O(V); once.
  absl::Status Prepare();
  absl::Status AddStops(const DivisionNode& node);
  void Restart();
  bool Opens(int n, int64_t limit) const {
    return costs_.must_open[static_cast<size_t>(n)] || costs_.whole[static_cast<size_t>(n)] > limit;
  }
  // Whether, of two children of a Branch or Rigid node, the first opens at lower limits.
  bool OpensLater(int a, int b) const;
  absl::Status Open(int n);
  // What is to be visited next under the limit; -1 if nothing is.
  int TakeNode(int64_t limit);
  absl::Status Visit(int n, int64_t limit);
  // Largest segment within an open node.
  absl::StatusOr<int64_t> VisitBranches(int n, int64_t limit);
  absl::StatusOr<int64_t> VisitLinear(int n, int64_t limit);
  int64_t SolveRun(const DivisionNode& node, size_t from, size_t to, int64_t limit);
  void Keep(int v);

  const CheckpointGraph& graph_;
  const DivisionTree& tree_;
  const DivisionCosts& costs_;
  StopPoll* const poll_;
  std::vector<LinearStop> stops_;   // of all Linear nodes
  std::vector<size_t> first_stop_;  // by node
  // The children of an open Branch or Rigid node: those that are closed, so many, are a heap with
  // the next to open in front.
  std::vector<int> closed_;
  std::vector<int> closed_count_;  // by node
  std::vector<KeptBytes> kept_;    // by Linear node, while it is open
  std::vector<bool> is_open_;
  std::vector<int> open_;     // all that are, and
  std::vector<int> waiting_;  // those opened but not visited yet
  std::priority_queue<Segment> segments_;
  LinearCheckpoints linear_;
  LimitedSet set_;
  int64_t limit_ = -1;
  KeptBytes* sum_ = nullptr;  // where Keep counts
  std::vector<int>* checkpoints_ = nullptr;
  int64_t steps_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_DIVISION_SEARCH_H_
