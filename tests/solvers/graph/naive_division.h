// The division tree straight from its definitions, by trying all pairs of vertices: for graphs of
// at most 31 vertices.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_NAIVE_DIVISION_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_NAIVE_DIVISION_H_

#include <cstdint>
#include <vector>

#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_tree.h"

namespace stowage::testing {

struct NaiveNode {
  DivisionKind kind;
  int start;
  int end;
  uint32_t inside;  // a bit per vertex
  int children;

  friend bool operator==(const NaiveNode& a, const NaiveNode& b) {
    return a.kind == b.kind && a.start == b.start && a.end == b.end && a.inside == b.inside &&
           a.children == b.children;
  }
};

// All nodes, each before its children, children in the order of DivisionTree.
std::vector<NaiveNode> DivideNaively(const CheckpointGraph& graph);

// The same of a tree.
std::vector<NaiveNode> Flatten(const DivisionTree& tree);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_NAIVE_DIVISION_H_
