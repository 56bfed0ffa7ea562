// Which version of its storage every vertex of a graph reads and leaves behind.
//
// A storage has the version of its owner first, then that of each vertex that writes over it in
// place, in program order. A vertex reads, of each input, the version that is there when the program
// reaches it. Versions are named by the position of the vertex that makes them. Immutable.
#ifndef STOWAGE_SOLVERS_SCHEDULE_GRAPH_LIVENESS_H_
#define STOWAGE_SOLVERS_SCHEDULE_GRAPH_LIVENESS_H_

#include <cstddef>
#include <vector>

#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

class GraphVersions {
 public:
  // O(V + E).
  explicit GraphVersions(const Graph& graph);

  // The version that the vertex reads of its k-th input.
  int read(int position, size_t k) const {
    return read_[first_read_[static_cast<size_t>(position)] + k];
  }
  // The version of its storage that the vertex's own output is.
  int made(int position) const { return made_[static_cast<size_t>(position)]; }

 private:
  std::vector<int> made_;
  std::vector<int> read_;
  std::vector<size_t> first_read_;
};

// Whether a schedule may run this forward a second time.
inline bool Recomputable(const Vertex& v) {
  return !v.collective && !v.must_keep && !v.inputs.empty();
}

// Storages that no vertex of another storage reads, by position of their owners: outputs of the
// network, whose gradients no backward of the graph makes. O(V + E).
std::vector<bool> SeedStorages(const Graph& graph);

// From an order of forwards and backwards to a schedule: where everything is dropped.

// `compute` is the order of forwards and backwards, a forward that keeps all wherever a backward
// shall use the extras that it makes; discards in it do not count, and all of it runs on the compute
// stream. The result
// - drops every tensor right after its last use before it is made again, hence never holds one that
//   is made anew;
// - leaves out repeated forwards none of whose results is used before it is made again, and of
//   views, which are there with their storage; first runs stay;
// - runs a forward whose extras are not used in the way that takes less memory: keeping nothing but
//   the output, or keeping all and dropping the extras at once.
// It is a schedule that the evaluator accepts whenever some placement of discards makes one of the
// order, takes no longer, and has no higher peak than any of them. One reverse sweep, O(V + E + the
// inputs of all instructions).
Schedule WithDiscards(const Graph& graph, const Schedule& compute);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_GRAPH_LIVENESS_H_
