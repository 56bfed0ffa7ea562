// Cuts a graph at its splitting vertices into a chain whose stages are segments of the program, so
// that chain solvers plan graphs.
//
// A position of the program order is a cut when one tensor alone crosses it, and nothing after it
// writes over that tensor in place. A stage runs the vertices between two cuts; its output is the
// tensor that crosses the second one. Sizes and overheads of a stage follow from the liveness
// inside it:
//   saved      what the segment's backwards need of it (outputs, inputs made inside, extras), and
//              its output;
//   overheads  the most that is alive at once while it runs forward (saving or not) or backward,
//              above what is counted already.
// A gradient lives from its first contribution to the end of the backward of the op that made its
// tensor; saved tensors are freed after the last backward that needs them. A view or an in-place
// result adds no bytes. The first vertex alone is a^0, the input of the chain, if it takes nothing
// but its output; its times do not count then. A stage with any other source (no inputs: fed from
// outside) must be kept, because nothing makes the source a second time.
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
