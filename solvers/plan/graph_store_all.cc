#include "solvers/plan/graph_store_all.h"

#include <cstddef>

#include "solvers/plan/graph_liveness.h"

namespace stowage {

Schedule StoreAllSchedule(const Graph& graph) {
  Schedule compute;
  compute.reserve(static_cast<size_t>(graph.size()) * 2);
  for (int v = 1; v <= graph.size(); ++v) compute.push_back(ForwardKeepAll(v));
  for (int v = graph.size(); v >= 1; --v) compute.push_back(Backward(v));
  return WithDiscards(graph, compute);
}

}  // namespace stowage
