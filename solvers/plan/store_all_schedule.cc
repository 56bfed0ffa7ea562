#include "solvers/plan/store_all_schedule.h"

#include <cstddef>

#include "solvers/plan/graph_liveness.h"

namespace stowage {

Schedule StoreAllSchedule(const Chain& chain) {
  Schedule schedule;
  const int last = chain.length() + 1;
  schedule.reserve(static_cast<size_t>(last) * 2);
  for (int l = 1; l <= last; ++l) schedule.push_back(ForwardKeepAll(l));
  for (int l = last; l >= 1; --l) schedule.push_back(Backward(l));
  return schedule;
}

Schedule StoreAllSchedule(const Graph& graph) {
  Schedule compute;
  compute.reserve(static_cast<size_t>(graph.size()) * 2);
  for (int v = 1; v <= graph.size(); ++v) compute.push_back(ForwardKeepAll(v));
  for (int v = graph.size(); v >= 1; --v) compute.push_back(Backward(v));
  return WithDiscards(graph, compute);
}

}  // namespace stowage
