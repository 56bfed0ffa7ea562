// Visits many items, and hears a stop token meanwhile.
#ifndef STOWAGE_SOLVERS_GRAPH_POLLED_LOOP_H_
#define STOWAGE_SOLVERS_GRAPH_POLLED_LOOP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "solvers/solver.h"

namespace stowage {

// Steps of `poll` that a visit of an item or two is worth.
inline constexpr int64_t kVisitSteps = 1 << 3;

// Calls visit(0) .. visit(count - 1), each worth so many steps of `poll`, which are far fewer than
// those between two looks at the token. CANCELLED or DEADLINE_EXCEEDED by `poll`, not all visited
// then.
template <class Visit>
absl::Status PolledLoop(size_t count, int64_t steps, const Visit& visit, StopPoll* poll) {
  constexpr size_t kBlock = size_t{1} << 12;
  absl::Status status;
  for (size_t i = 0; i < count && status.ok();) {
    const size_t begin = i;
    for (const size_t end = std::min(count, i + kBlock); i < end; ++i) visit(i);
    status = poll->Spend(static_cast<int64_t>(i - begin) * steps);
  }
  return status;
}

// Calls visit(v) for every vertex of a graph, which looks at the vertex and its inputs.
template <class Graph, class Visit>
absl::Status PolledVertices(const Graph& graph, const Visit& visit, StopPoll* poll) {
  absl::Status status;
  for (int v = 0; v < graph.size() && status.ok(); ++v) {
    visit(v);
    status = poll->Spend(static_cast<int64_t>(1 + graph.inputs(v).size()) * kVisitSteps);
  }
  return status;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_POLLED_LOOP_H_
