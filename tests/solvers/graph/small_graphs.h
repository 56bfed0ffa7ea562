// Small checkpoint graphs by the dozen: all there are, or random ones.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_SMALL_GRAPHS_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_SMALL_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_graph.h"

namespace stowage::testing {

using EdgeList = std::vector<std::pair<int, int>>;

// Calls `visit` with every set of edges from lower to higher numbered vertices that makes 0 the one
// source and the last vertex the one target.
void ForEachDag(int vertices, const std::function<void(const EdgeList&)>& visit);

// A random one, each possible edge present with the given chance and then mended so that 0 is the
// one source and the last vertex the one target.
EdgeList RandomDag(int vertices, double chance, std::mt19937_64* random);

CheckpointGraphSpec SpecOf(int vertices, const EdgeList& edges, const std::vector<int64_t>& bytes);
// That the test knows to be valid.
CheckpointGraph GraphOf(CheckpointGraphSpec spec);

// `vertices` numbers in [low, high].
std::vector<int64_t> RandomBytes(int vertices, int64_t low, int64_t high, std::mt19937_64* random);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_SMALL_GRAPHS_H_
