// What has to run again at some time step of a graph, for every budget at once: for each of some time steps a convex
// function of memory, made of hulls of ops that depend on each other (../algorithms.md, "What is needed to run again").
// Immutable.
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_CURVE_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_CURVE_H_

#include <cstdint>
#include <vector>

#include "solvers/model/graph.h"
#include "solvers/model/units.h"

namespace stowage {

class RecomputeCurve {
 public:
  // O(V + E) for each time step that is looked at, of which there are some tens, fewer on very large graphs. Of a
  // compute DAG it is 0 everywhere.
  explicit RecomputeCurve(const Graph& graph);

  // No schedule without transfers, and with nothing on the communication stream, within the budget repeats forwards for
  // less. Never rises with the budget. O(time steps * log V).
  Nanos At(Bytes budget) const;

 private:
  // Of one time step: giving up `bytes` of what is held takes `time`, in fractions the next step's too.
  struct Corner {
    int64_t bytes, time;
  };
  struct TimeStep {
    int64_t all = 0;  // bytes where nothing runs again
    std::vector<Corner> corners;
  };

  friend class RecomputeCurveBuilder;

  std::vector<TimeStep> time_steps_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_CURVE_H_
