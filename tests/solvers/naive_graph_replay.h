// A second evaluator for graphs, written from the accounting table alone and as plainly as possible
// (naive_world.h). Slow on purpose.
#ifndef STOWAGE_TESTS_SOLVERS_NAIVE_GRAPH_REPLAY_H_
#define STOWAGE_TESTS_SOLVERS_NAIVE_GRAPH_REPLAY_H_

#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"
#include "tests/solvers/naive_replay.h"

namespace stowage::testing {

// `transfers` null: no transfer is valid. Sums and copies must stay far from 64 bits.
NaiveResult NaiveGraphReplay(const Graph& graph, const Schedule& schedule,
                             const TransferModel* transfers = nullptr);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_GRAPH_REPLAY_H_
