// The least checkpoints of a linear graph under a limit on its segments: Feng & Huang 2018,
// algorithm 1, with the shortest path through the accessibility graph found by a sliding window.
//
// Works in bare bytes: sums of sizes below kMaxTotal, and segments that may cost that much again,
// do not overflow.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_DIVISION_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_DIVISION_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_tree.h"
#include "solvers/solver.h"

namespace stowage {

// A vertex that may be a checkpoint.
struct LinearStop {
  int64_t bytes = 0;
  int64_t before = 0;      // of all in front of it: vertices and what lies between them
  bool must_keep = false;  // no segment may pass it

  // What lies between this one and `next`.
  int64_t Until(const LinearStop& next) const { return next.before - before - bytes; }
};

// Sums that are compared by bytes, then by number.
struct KeptBytes {
  int64_t bytes = 0;
  int count = 0;

  friend bool operator<(const KeptBytes& a, const KeptBytes& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.count < b.count;
  }
};

// Keeps its arrays from one solve to the next. Not thread-safe.
class LinearCheckpoints {
 public:
  // Finds which stops to keep so that no segment between two kept ones exceeds the limit: the least
  // bytes; then the fewest; then, from the last backwards, the earliest. The first and the last stop
  // are always kept and do not count. No two consecutive stops may be further apart than the limit.
  // O(stops).
  void Solve(absl::Span<const LinearStop> stops, int64_t limit);

  // Of the last solve.
  const KeptBytes& kept() const { return kept_; }
  // The stop kept before `stop`, another that is kept or the last.
  size_t previous(size_t stop) const { return via_[stop]; }

 private:
  // A stop as the last one kept. Holds all that the loop compares: its branches are hard to
  // predict, so a solve takes as long as they wait for what they compare.
  struct Candidate {
    KeptBytes kept;   // itself counted
    int64_t end = 0;  // of all in front of it and itself
    size_t stop = 0;
  };

  KeptBytes kept_;
  std::vector<size_t> via_;
  std::vector<Candidate> window_;  // rising by what is kept; the front is the least
};

// What the nodes of a division tree cost a search for checkpoints.
// How much an op that needs its inputs makes the segments that end at it cost.
enum class NeededInputs {
  kIgnored,    // nothing: segments cost at most what they really do
  kAllCharged  // as if no input were a checkpoint but those that must be once a segment is divided:
               // segments cost at least what they really do
};

// By node.
struct DivisionCosts {
  // As one segment; or, of a Linear node, as the last part of one.
  std::vector<int64_t> whole;
  // Something inside must be kept, so the node cannot be inside a segment.
  std::vector<bool> must_open;
};

// O(V + E). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<DivisionCosts> CostsOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                      NeededInputs needed, StopPoll* poll);

// The least checkpoints of a graph under a limit on its segments, found on its division tree: Feng
// & Huang 2018, algorithm 5.
//
// A node that fits the limit is not opened. A Branch or Rigid node that does not has all vertices
// that its children meet in for checkpoints; a Linear one has the ends of the children that do not
// fit, and between those what LinearCheckpoints finds.
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

// The best of all limits: Feng & Huang 2018, algorithm 6, without trying all sums of sizes.
//
// A set of least bytes D under the limit C, with a largest segment B <= C, costs D + B. Any set with
// a largest segment in [B, C] costs as much; and D only grows as C falls, so any with one above
// best - D costs at least what is known already. The next limit worth trying is thus the smaller of
// the two, less one: no list of candidates is needed.
//
// There may be as many limits worth trying as there are sums of sizes. Once they have taken long, the
// limits left are halved where they promise most: sets with a largest segment in (A, C] cost D + A
// + 1 at least, which bounds what is not looked at.
struct SweepResult {
  std::vector<int> checkpoints;
  int64_t objective = 0;    // theirs, as the search counts
  int64_t lower_bound = 0;  // of all sets, so counted; the objective if the work sufficed
  int64_t limits_tried = 0;
};

// `most` is a limit under which everything fits, `work` the steps of the search after which no limit
// is tried any more, but for the first samples. Of the options, progress counts; fails as the
// search's token says.
absl::StatusOr<SweepResult> SweepLimits(int64_t most, int64_t work, DivisionSearch* search,
                                        const SolveContext& context);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_DIVISION_SEARCH_H_
