// A second referee for graphs, written from the accounting table alone and as plainly as possible:
// named things in a map, memory summed anew at every moment. Slow on purpose.
#ifndef STOWAGE_TESTS_SOLVERS_NAIVE_GRAPH_REPLAY_H_
#define STOWAGE_TESTS_SOLVERS_NAIVE_GRAPH_REPLAY_H_

#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"
#include "tests/solvers/naive_replay.h"

namespace stowage::testing {

NaiveResult NaiveGraphReplay(const Graph& graph, const Schedule& schedule);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_GRAPH_REPLAY_H_
