// A topological order of a graph and what is open at each step of it: the frontier, the vertices
// passed that vertices to come still read. Each has a slot, a bit of a word, while it is open.
#ifndef STOWAGE_SOLVERS_GRAPH_FRONTIER_ORDER_H_
#define STOWAGE_SOLVERS_GRAPH_FRONTIER_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/solver.h"

namespace stowage {

struct FrontierStep {
  int vertex;
  int slot;        // of the vertex from here on
  uint64_t reads;  // slots of its inputs
  uint64_t ends;   // slots that nobody reads after this step
};

// A set of slots with `slot` alone.
inline uint64_t SlotBit(int slot) { return uint64_t{1} << slot; }

struct FrontierOrder {
  static constexpr int kMaxSlots = 64;
  std::vector<FrontierStep> steps;
  std::vector<int> slot;  // by vertex
  int widest = 0;         // most slots in use at once
};

// The narrower of the graph's own order and one that takes next what leaves the smallest frontier;
// nothing if both have more than kMaxSlots open at once. O(64 V + E). Fails as the token says.
absl::StatusOr<std::optional<FrontierOrder>> MakeFrontierOrder(const CheckpointGraph& graph,
                                                               StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_FRONTIER_ORDER_H_
