// Exhaustive search over all schedules of a small graph without aliases that the evaluator accepts:
// every order of forwards and backwards, recomputing and dropping whatever and whenever.
//
// Dijkstra's algorithm over what is held and what is still to be done: exponential in the vertices,
// for up to six or so.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_SEARCH_H_

#include <cstdint>
#include <map>
#include <optional>

#include "solvers/model/graph.h"
#include "tests/solvers/schedule_search.h"

namespace stowage::testing {

// kKept: gradients are added up in plain training's order (solvers/schedule/gradient_sums.h).
enum class SumOrder { kAny, kKept };

// A fastest schedule whose peak is within the budget; nothing if none is.
std::optional<FoundSchedule> SearchGraphSchedules(const Graph& graph, int64_t budget,
                                                  SumOrder sums = SumOrder::kAny);

// The least peak of any schedule.
int64_t LeastGraphPeak(const Graph& graph, SumOrder sums = SumOrder::kAny);

// Peak -> least makespan with that peak or less, for every peak at which the makespan changes. The
// first is LeastGraphPeak.
std::map<int64_t, int64_t> GraphScheduleFrontier(const Graph& graph,
                                                 SumOrder sums = SumOrder::kAny);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_SEARCH_H_
