// Graphs that tests write op by op.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_OPS_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_OPS_H_

#include <cstdint>
#include <vector>

#include "solvers/model/graph.h"

namespace stowage::testing {

// An op of no bytes that takes no time; its id is its place in program order.
Vertex MakeOp(int64_t id, std::vector<GraphInput> inputs);
// The same with an output, and a gradient of it, of so many bytes, and times that tell it from other
// ops: 10 ns more than its id forward, 20 ns more backward.
Vertex MakeOp(int64_t id, std::vector<GraphInput> inputs, int64_t bytes);

// Stops the process if it is no graph.
Graph MakeGraph(std::vector<Vertex> vertices);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_OPS_H_
