// Sorts many items or makes a heap of them, and hears a stop token meanwhile.
#ifndef STOWAGE_SOLVERS_GRAPH_POLLED_SORT_H_
#define STOWAGE_SOLVERS_GRAPH_POLLED_SORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "solvers/graph/polled_loop.h"
#include "solvers/solver.h"

namespace stowage {

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

#endif  // STOWAGE_SOLVERS_GRAPH_POLLED_SORT_H_
