// Visits many items, and hears a stop token meanwhile.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_POLLED_LOOPS_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_POLLED_LOOPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

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

// Sorts many items or makes a heap of them, and hears a stop token meanwhile.
// As std::sort does; no two items may be equal but not the same. O(n log n). CANCELLED or
// DEADLINE_EXCEEDED by `poll`, the items in any order then.
template <class T, class Less>
absl::Status PolledSort(const Less& less, std::vector<T>* items, StopPoll* poll) {
  constexpr size_t kRun = size_t{1} << 15;
  const auto at = [items](size_t i) {
    return items->begin() + static_cast<std::ptrdiff_t>(std::min(i, items->size()));
  };
  absl::Status status;
  for (size_t i = 0; i < items->size() && status.ok(); i += kRun) {
    std::sort(at(i), at(i + kRun), less);
    status = poll->Spend(static_cast<int64_t>(std::min(kRun, items->size() - i)) << 4);
  }
  for (size_t run = kRun; run < items->size() && status.ok(); run *= 2) {
    for (size_t i = 0; i + run < items->size() && status.ok(); i += 2 * run) {
      std::inplace_merge(at(i), at(i + run), at(i + 2 * run), less);
      status = poll->Spend(static_cast<int64_t>(run) << 2);
    }
  }
  return status;
}

// As std::make_heap does with the `size` items from `first` on. O(n). Fails as PolledSort does.
template <class Iterator, class Less>
absl::Status PolledMakeHeap(Iterator first, size_t size, const Less& less, StopPoll* poll) {
  const auto at = [first](size_t i) { return first + static_cast<std::ptrdiff_t>(i); };
  const auto sift_down = [&](size_t k) {
    size_t top = size / 2 - 1 - k;
    for (size_t child = 2 * top + 1; child < size; child = 2 * top + 1) {
      if (child + 1 < size && less(*at(child), *at(child + 1))) ++child;
      if (!less(*at(top), *at(child))) break;
      std::iter_swap(at(top), at(child));
      top = child;
    }
  };
  return PolledLoop(size / 2, 1 << 4, sift_down, poll);
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_POLLED_LOOPS_H_
