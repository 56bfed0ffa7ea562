// Chains as the graphs they are: vertex 1 is the input, vertex l + 1 is stage l, the last the loss.
#ifndef STOWAGE_TESTS_SOLVERS_CHAIN_AS_GRAPH_H_
#define STOWAGE_TESTS_SOLVERS_CHAIN_AS_GRAPH_H_

#include <functional>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

// The chain changed so that a graph can say the same: the loss has no gradient of its own, and a
// backward's overhead covers the gradient that it makes. `change` is applied to every stage first.
Chain ComparableChain(
    const Chain& chain, const std::function<void(Stage*)>& change = [](Stage*) {});

// Of a comparable chain.
Graph ChainAsGraph(const Chain& chain);

// The schedule of the graph that does what a valid schedule does on the chain; empty if that is none,
// because the chain holds an activation twice, alone and among saved tensors. Where the chain copies
// what a stage saves, the graph copies two tensors: in the same time if copies have no latency and
// take whole nanoseconds.
Schedule ScheduleAsGraph(const Chain& chain, const Schedule& schedule);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_CHAIN_AS_GRAPH_H_
