// What a time step of a graph holds for sure, and what backwards need after it (../algorithms.md).
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_TIME_STEP_NEEDS_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_TIME_STEP_NEEDS_H_

#include <cstdint>
#include <vector>

#include "solvers/model/graph.h"
#include "solvers/model/index.h"
#include "solvers/model/units.h"
#include "solvers/schedule/graph_liveness.h"

namespace stowage {

// Calls `visit` with each ancestor of p that is not in `below`, by vertex, and puts it there.
template <class Visit>
void ForEachNewAncestor(const Graph& graph, int p, std::vector<bool>* below, const Visit& visit) {
  std::vector<int> open = {p};
  while (!open.empty()) {
    const int reader = open.back();
    open.pop_back();
    for (const GraphInput& input : graph.vertex(reader).inputs) {
      const int from = static_cast<int>(input.vertex);
      if ((*below)[Index(from)]) continue;
      (*below)[Index(from)] = true;
      open.push_back(from);
      visit(from);
    }
  }
}

// A vertex runs backward, or its forward does that makes what this backward uses; of a compute DAG its first forward.
struct GraphMoment {
  int vertex;
  bool backward;
  int64_t bytes;  // about what it takes where all that is needed later is held
};

// By position; outputs by the vertex that makes the version.
struct TimeStepNeeds {
  std::vector<bool> output_needed, extras_needed;  // by what surely comes later
  std::vector<bool> output_held;                   // the time step needs it itself
  int64_t beside = 0;                              // bytes: all that the time step takes itself
  // Bytes of the time step itself and of all that is needed later; of a storage for each of its versions.
  double all = 0;

  // Of forwards and backwards that end before it for sure, and of those that start with it or later.
  Nanos before, after;

  // Whether it is held, or costs nothing to hold.
  bool IsThere(const Graph& graph, int maker) const {
    return output_held[Index(maker)] || graph.bytes(graph.storage(maker)).value() == 0;
  }
  // Whether to hold something of the vertex or to run it again.
  bool HasChoice(const Graph& graph, int p) const {
    return extras_needed[Index(p)] || (output_needed[Index(p)] && !IsThere(graph, p));
  }
};

// Positions along a longest path, from its source. O(V + E).
std::vector<int> LongestPath(const Graph& graph);

class GraphMoments {
 public:
  explicit GraphMoments(const Graph& graph);

  const GraphVersions& versions() const { return versions_; }
  // Vertices and inputs that At looks at.
  int64_t work() const { return work_; }

  // From the source on, two for each vertex. O(V + E). Of a compute DAG some, one each; O(V + E) for each.
  std::vector<GraphMoment> AlongLongestPath() const;
  // O(V + E).
  TimeStepNeeds At(const GraphMoment& moment) const;

 private:
  // What the moment takes itself.
  struct Own {
    std::vector<int> outputs;    // that are held, by the vertices that make the versions
    std::vector<int> gradients;  // by owner of the storage
    int64_t bytes;               // of both, extras and overhead
  };

  std::vector<GraphMoment> AlongLongestPathOfDag() const;
  TimeStepNeeds AtFirstForward(const GraphMoment& moment) const;
  Own OwnAt(const GraphMoment& moment) const;
  int64_t ForwardBytes(int p) const;
  // p and what reads it, directly or not; what p reads so.
  std::vector<bool> Above(int p) const;
  std::vector<bool> Below(int p) const;
  // The gradients of ancestors to which p or a descendant has contributed.
  void AddGradientsOfOthers(const std::vector<bool>& above, const std::vector<bool>& below,
                            Own* own) const;
  // Adds what the marked ones read, directly or not.
  void AddWhatTheyRead(std::vector<bool>* marked) const;
  Nanos ForwardTimeUpTo(std::vector<bool> last) const;
  int64_t StorageBytes(int maker) const { return graph_.bytes(graph_.storage(maker)).value(); }

  const Graph& graph_;
  const GraphVersions versions_;
  int64_t work_ = 1;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_TIME_STEP_NEEDS_H_
