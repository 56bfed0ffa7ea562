// Random compute DAGs, for the tests.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_COMPUTE_DAG_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_COMPUTE_DAG_H_

#include <random>

#include "solvers/model/graph.h"

namespace stowage::testing {

struct RandomComputeDagOptions {
  int nodes = 6;
  int max_size = 5;
  int max_time = 6;
  double density = 0.3;  // probability that a node reads one more of those before it
  double results = 0.3;  // probability that a node is a result; the last one is
  bool with_views = false;
  bool with_writes = false;  // nodes that write in place over what nobody else reads
  bool with_flags = false;   // random, stateful, collective, must-keep nodes
};

// Ids are 10, 11, ... in program order.
Graph RandomComputeDag(const RandomComputeDagOptions& options, std::mt19937_64* rng);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_COMPUTE_DAG_H_
