// The least objective by trying all sets of checkpoints, from the definition of Feng & Huang 2018
// and nothing of what the solvers use: for graphs of some dozen vertices.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_BRUTE_FORCE_CHECKPOINTS_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_BRUTE_FORCE_CHECKPOINTS_H_

#include <cstdint>

#include "solvers/graph/checkpoint_graph.h"

namespace stowage::testing {

// Of sets whose segments have one checkpoint in front and one behind.
int64_t LeastObjectiveOfTwoEndPoints(const CheckpointGraph& graph);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_BRUTE_FORCE_CHECKPOINTS_H_
