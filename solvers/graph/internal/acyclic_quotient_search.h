// A topological order of a graph and what is open at each step of it: the vertices passed that
// vertices to come still read, those of the edges that the step cuts. Each has a slot, a bit of a word, while it is open.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_ACYCLIC_QUOTIENT_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_ACYCLIC_QUOTIENT_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/solver.h"

namespace stowage {

struct CutStep {
  int vertex;
  int slot;        // of the vertex from here on
  uint64_t reads;  // slots of its inputs
  uint64_t ends;   // slots that nobody reads after this step
};

// A set of slots with `slot` alone.
inline uint64_t SlotBit(int slot) { return uint64_t{1} << slot; }

struct CutOrder {
  static constexpr int kMaxSlots = 64;
  std::vector<CutStep> steps;
  std::vector<int> slot;  // by vertex
  int widest = 0;         // most slots in use at once
};

// The narrower of the graph's own order and one that takes next what leaves the fewest vertices open;
// nothing if both have more than kMaxSlots open at once. O(64 V + E). Fails as the token says.
absl::StatusOr<std::optional<CutOrder>> MakeCutOrder(const CheckpointGraph& graph, StopPoll* poll);

// A lower bound of the checkpoint objective from one directed path of the graph.
//
// Whatever set R is allowed, its part on the path costs no more, and each run of the path without
// checkpoints is connected, hence lies in one segment: the path alone, as a linear graph, has no
// larger objective under R. What must be kept off the path is paid as well. So the least objective
// of the path (Feng & Huang 2018, Algorithm 1) bounds every rule of checkpoint_set.h, and the least
// checkpoints of a rest of the path under a limit of the segments bound those of a partial solution.
//
// The path is the heaviest. Immutable, hence thread-safe.
class CheckpointPathBound {
 public:
  // O(V + E). Fails as the token says.
  static absl::StatusOr<CheckpointPathBound> Create(const CheckpointGraph& graph, StopPoll* poll);

  const std::vector<int>& path() const { return path_; }

  // At [i]: the least bytes of checkpoints among path()[i..] with no run over the limit, whatever is
  // kept before; 0 at [path().size()]. O(length).
  std::vector<int64_t> LeastCheckpoints(int64_t limit) const;

  // No allowed set has a smaller objective. Narrows intervals of limits until the bound is within a
  // thousandth of the path's optimum, or after 256 steps: O(256 length). Fails as the token says.
  absl::StatusOr<int64_t> LeastObjective(StopPoll* poll) const;

  // Bytes of the checkpoints off the path that every set has.
  int64_t kept_off_path() const { return kept_off_path_; }

 private:
  CheckpointPathBound() = default;

  std::vector<int> path_;
  std::vector<int64_t> bytes_;   // along the path
  std::vector<bool> must_keep_;  // along the path, its ends included
  int64_t kept_off_path_ = 0;
};

// What is known of a partial choice of checkpoints, along a topological order: all that its
// completions depend on.
//
// Segments that still have open vertices are open: which slots (CutOrder) are
// theirs, which they reach through checkpoints, and their bytes so far. A vertex that is no
// checkpoint joins the segments of its inputs; where one of them reaches another, or reaches a
// checkpoint that the vertex reads, the segment would wait for itself and the choice is refused.
// Open slots in no open segment are checkpoints. Two states that agree on the slots
// allow the same completions, so that the one that is no better in any number can go.
class CutState {
 public:
  explicit CutState(int64_t largest) : largest_(largest) {}

  // The state after a step. Join returns false where a segment would wait for itself. A state whose
  // largest() is kMaxTotal or more is beyond all limits: it has no next step.
  void Keep(const CheckpointGraph& graph, const CutOrder& order, const CutStep& step);
  bool Join(const CheckpointGraph& graph, const CutStep& step);

  int64_t checkpoint_bytes() const { return checkpoint_bytes_; }
  // Of the largest segment so far, open or not, or what the state began with.
  int64_t largest() const { return largest_; }
  // Of the open segments, each with what it needs of others: may be more than an int64_t holds.
  double open_bytes() const;

  // Equal for states that agree on the slots, and hardly ever else.
  uint64_t Hash() const;
  bool AgreesWith(const CutState& other) const;
  // Every completion of an agreeing state is no worse on top of this one.
  bool Dominates(const CutState& other) const;

 private:
  struct Segment {
    uint64_t members;  // slots, never none
    uint64_t reach;    // slots of checkpoints and other segments that wait for it
    int64_t bytes;     // with what is needed of other segments
  };
  // A checkpoint whose op needs inputs that lie in several open segments: each counts what the
  // others hold of them, until they turn out to be one.
  struct Need {
    uint64_t segments;  // slots of all of them
    int64_t bytes;
  };

  void AddNeededInputs(const CheckpointGraph& graph, const CutOrder& order, int v);
  // Bytes that are counted more than once when the segments that have the slots become one, which
  // has these members.
  absl::int128 UniteNeeds(uint64_t slots, uint64_t members);
  void Close(uint64_t slots);

  int64_t checkpoint_bytes_ = 0;
  int64_t largest_;
  absl::InlinedVector<Segment, 4> open_;  // by their lowest slots
  absl::InlinedVector<Need, 1> needs_;
};

// Searches the sets of checkpoints with several end points along a topological order, all partial
// choices at a time: one layer of states per vertex, dominated ones dropped, and
// those that cannot lead to a better set than is known. Exact as long as no layer has to be cut to
// the width asked for; a beam search where they have to.
struct CutSearchLimits {
  int64_t above =
      0;  // only sets with a larger largest segment are looked for (others may be found)
  int64_t limit = 0;        // none with a larger one
  int64_t known = 0;        // only sets of a smaller objective
  size_t width = 1;         // states per layer
  double segment_rate = 0;  // of open bytes, in checkpoint bytes: what a cut layer goes by
  int64_t work = 0;         // states to look at before the search ends without result
};

struct CutSearchResult {
  std::vector<int> checkpoints;  // rising; empty: none found
  int64_t objective = 0;         // theirs
  bool complete = false;         // nothing was cut: no better one is there
  int64_t work = 0;              // states looked at
};

// Thread-safe. The graph must outlive it.
class CutSearch {
 public:
  CutSearch(const CheckpointGraph& graph, const CheckpointPathBound& bound, CutOrder order);

  // O(V + work) steps of up to 64 operations, as many as segments may be open, and where ops need
  // their inputs of up to so many more for each input; 8 bytes of memory per vertex and state of the
  // width. Fails as the token says.
  absl::StatusOr<CutSearchResult> Run(const CutSearchLimits& limits, StopPoll* poll) const;

 private:
  const CheckpointGraph& graph_;
  const CheckpointPathBound& bound_;
  const CutOrder order_;
  std::vector<size_t> path_from_;   // at [i]: where the path goes on from step i
  std::vector<int64_t> kept_from_;  // at [i]: bytes off the path that must be kept, from step i
};

// Shares a fixed amount of work among searches over cuts (CutSearch) whose largest segments
// lie in different bands: where to stop segments is what a set is mostly about, and within a band
// states differ in little but what they hold.
//
// Round by round the more promising half of the bands is searched with twice the width. A band that
// was searched without a cut is closed: once all are, the best set is optimal. Bands that the path
// bound rules out are closed from the start.
class BandSearch {
 public:
  // `answer` has the set to start from and a lower bound; both improve. All must outlive it.
  BandSearch(const CheckpointGraph& graph, const CheckpointPathBound& bound,
             const CutSearch& search, CheckpointAnswer* answer);

  // Looks at about so many states. Fails as the token says.
  absl::Status Run(int64_t work, StopPoll* poll, const std::function<void(double)>& progress);

 private:
  struct Band {
    int64_t above;  // the largest segment is more than this, or none
    int64_t limit;  // and no more than that
    int64_t bound;  // no set of the band has a smaller objective
    int64_t found;  // the objective of its best known set
    int64_t work;   // that its last search took
  };

  int64_t best() const { return answer_->set.objective().value(); }
  // Searches a band for sets better than `known`.
  absl::Status Search(int64_t known, size_t width, Band* band, StopPoll* poll);
  // Takes the closed ones out, and puts the promising ones first.
  void Sort();

  const CheckpointGraph& graph_;
  const CutSearch& search_;
  CheckpointAnswer* const answer_;
  std::vector<Band> bands_;  // open ones
  int64_t work_left_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_ACYCLIC_QUOTIENT_SEARCH_H_
