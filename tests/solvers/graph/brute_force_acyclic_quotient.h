// The checkpoint objective from its definition, with nothing of the library but the graph: to check
// the validation, and the solvers, on small graphs.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_BRUTE_FORCE_ACYCLIC_QUOTIENT_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_BRUTE_FORCE_ACYCLIC_QUOTIENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"

namespace stowage::testing {

struct DefinedCost {
  int64_t checkpoints = 0;
  int64_t segment = 0;
};

// Of the vertices whose bits are set; nothing where the rule forbids them. Up to 31 vertices.
std::optional<DefinedCost> CostByDefinition(const CheckpointGraph& graph, uint32_t kept,
                                            SegmentRule rule);

// The best of all sets. Up to some 14 vertices.
int64_t BestObjective(const CheckpointGraph& graph, SegmentRule rule);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_BRUTE_FORCE_ACYCLIC_QUOTIENT_H_
