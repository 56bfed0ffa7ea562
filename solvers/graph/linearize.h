// Cuts a graph at its splitting vertices into a chain whose stages are segments of the program, so
// that chain solvers plan graphs.
//
// algorithms.md says where it cuts, and what a stage saves and takes.
#ifndef STOWAGE_SOLVERS_GRAPH_LINEARIZE_H_
#define STOWAGE_SOLVERS_GRAPH_LINEARIZE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct LinearizedGraph {
  Chain chain;
  // Where stages begin, by position: stage l runs the vertices stage_begin[l - 1] to stage_begin[l]
  // - 1. Those before stage_begin[0] are a^0. L + 1 entries.
  std::vector<int> stage_begin;
};

// O(V log V + E). INVALID_ARGUMENT if the derived chain breaks a limit of Chain::Create.
absl::StatusOr<LinearizedGraph> Linearize(const Graph& graph);

// From a schedule of the chain that Linearize makes of a graph to a schedule of the graph itself.

// Runs the vertices of a stage, forwards in program order and backwards in reverse, wherever the
// chain's schedule runs the stage; those of a^0 once at the start and at the end. What is dropped
// where is decided anew, by WithDiscards. If Simulate accepts `schedule` on linearized.chain, and
// the evaluator accepts StoreAllSchedule of the graph, then it accepts the result, which takes no
// longer (the times of a^0 apart) and has no higher peak. `linearized` must be of `graph`. O(V + E +
// the inputs of all that runs).
Schedule ExpandSchedule(const Graph& graph, const LinearizedGraph& linearized,
                        const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LINEARIZE_H_
