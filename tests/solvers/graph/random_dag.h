// Random graphs of the checkpoint objective, of any width and with flags.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_RANDOM_DAG_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_RANDOM_DAG_H_

#include <random>
#include <string>

#include "solvers/graph/checkpoint_graph.h"

namespace stowage::testing {

struct RandomDagOptions {
  double density = 0.3;  // of the edges between any two vertices
  int longest_edge = 1 << 30;
  int max_bytes = 20;
  bool with_flags = false;  // some must be kept, some need their inputs
};

// Every vertex on a path from the first to the last one. At least one vertex.
CheckpointGraph RandomDag(int size, const RandomDagOptions& options, std::mt19937_64* rng);

// "l=[1,2,3] edges=01,12 keep=1 needs=": to reproduce a failure.
std::string Describe(const CheckpointGraph& graph);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_RANDOM_DAG_H_
