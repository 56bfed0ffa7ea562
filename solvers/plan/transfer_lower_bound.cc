#include "solvers/plan/transfer_lower_bound.h"

#include <algorithm>

#include "solvers/plan/graph_lower_bound.h"
#include "solvers/plan/lower_bound.h"

namespace stowage {
namespace {

// All tensors together, or more.
Bytes SizeOfAll(const Chain& chain) {
  Bytes sum = chain.activation(0);
  for (int l = 1; l <= chain.length() + 1; ++l) sum += chain.stage(l).output + chain.stage(l).saved;
  return sum;
}

Bytes SizeOfAll(const Graph& graph) {
  Bytes sum;
  for (int p = 0; p < graph.size(); ++p) sum += graph.bytes(p) + graph.vertex(p).extra_saved;
  return sum;
}

Nanos ThereAndBack(const TransferModel& transfers, Bytes bytes) {
  if (bytes == Bytes(0)) return Nanos(0);
  const Nanos there = CopyTime(transfers.to_host, bytes);
  return there + std::min(CopyTime(transfers.to_device, bytes), Nanos(kMaxTotal) - there);
}

template <class Problem>
Nanos BoundWith(const Problem& problem, const TransferModel& transfers, Bytes budget) {
  const auto within = [&problem, budget](Bytes on_host) {
    return MakespanLowerBound(problem, std::min(budget, Bytes(kMaxTotal)) + on_host);
  };
  // The least x such that one byte more than x takes no less than any schedule within x.
  Bytes low;
  Bytes high = std::min(SizeOfAll(problem), transfers.host_memory);
  while (low < high) {
    const Bytes middle((low.value() + high.value()) / 2);
    if (ThereAndBack(transfers, middle + Bytes(1)) >= within(middle)) {
      high = middle;
    } else {
      low = middle + Bytes(1);
    }
  }
  // For low itself, and for one byte less.
  return std::max(within(low), ThereAndBack(transfers, low));
}

}  // namespace

Nanos MakespanLowerBound(const Chain& chain, const TransferModel& transfers, Bytes budget) {
  return BoundWith(chain, transfers, budget);
}

Nanos MakespanLowerBound(const Graph& graph, const TransferModel& transfers, Bytes budget) {
  return BoundWith(graph, transfers, budget);
}

}  // namespace stowage
