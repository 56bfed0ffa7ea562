#include "solvers/offload/moved_instructions.h"

#include <algorithm>
#include <numeric>

namespace stowage {

Schedule WithMoved(const Schedule& schedule, const std::vector<size_t>& before) {
  std::vector<size_t> order(schedule.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&before](size_t a, size_t b) {
    if (before[a] != before[b]) return before[a] < before[b];
    return (before[a] != a) > (before[b] != b);
  });
  Schedule moved;
  moved.reserve(schedule.size());
  for (const size_t i : order) moved.push_back(schedule[i]);
  return moved;
}

}  // namespace stowage
