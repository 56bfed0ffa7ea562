// What is known of a partial choice of checkpoints, along a topological order: all that its
// completions depend on.
//
// Segments that still have vertices in the frontier are open: which slots (frontier_order.h) are
// theirs, which they reach through checkpoints, and their bytes so far. A vertex that is no
// checkpoint joins the segments of its inputs; where one of them reaches another, or reaches a
// checkpoint that the vertex reads, the segment would wait for itself and the choice is refused.
// Slots of the frontier in no open segment are checkpoints. Two states that agree on the slots
// allow the same completions, so that the one that is no better in any number can go.
#ifndef STOWAGE_SOLVERS_GRAPH_FRONTIER_STATE_H_
#define STOWAGE_SOLVERS_GRAPH_FRONTIER_STATE_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/numeric/int128.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/frontier_order.h"

namespace stowage {

class FrontierState {
 public:
  explicit FrontierState(int64_t largest) : largest_(largest) {}

  // The state after a step. Join returns false where a segment would wait for itself. A state whose
  // largest() is kMaxTotal or more is beyond all limits: it has no next step.
  void Keep(const CheckpointGraph& graph, const FrontierOrder& order, const FrontierStep& step);
  bool Join(const CheckpointGraph& graph, const FrontierStep& step);

  int64_t checkpoint_bytes() const { return checkpoint_bytes_; }
  // Of the largest segment so far, open or not, or what the state began with.
  int64_t largest() const { return largest_; }
  // Of the open segments, each with what it needs of others: may be more than an int64_t holds.
  double open_bytes() const;

  // Equal for states that agree on the slots, and hardly ever else.
  uint64_t Hash() const;
  bool AgreesWith(const FrontierState& other) const;
  // Every completion of an agreeing state is no worse on top of this one.
  bool Dominates(const FrontierState& other) const;

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

  void AddNeededInputs(const CheckpointGraph& graph, const FrontierOrder& order, int v);
  // Bytes that are counted more than once when the segments that have the slots become one, which
  // has these members.
  absl::int128 UniteNeeds(uint64_t slots, uint64_t members);
  void Close(uint64_t slots);

  int64_t checkpoint_bytes_ = 0;
  int64_t largest_;
  absl::InlinedVector<Segment, 4> open_;  // by their lowest slots
  absl::InlinedVector<Need, 1> needs_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_FRONTIER_STATE_H_
