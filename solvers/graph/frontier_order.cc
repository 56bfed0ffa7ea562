#include "solvers/graph/frontier_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace stowage {
namespace {

// Choosing the next vertex looks at so many that are ready, the longest waiting first.
constexpr size_t kChoices = 64;

size_t Index(int v) { return static_cast<size_t>(v); }
uint64_t Bit(int slot) { return uint64_t{1} << slot; }

// Takes what closes most; among equals what was made ready last, which keeps to one branch.
std::vector<int> NarrowOrder(const CheckpointGraph& graph) {
  std::vector<int> waits(Index(graph.size())), readers(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    waits[Index(v)] = static_cast<int>(graph.inputs(v).size());
    readers[Index(v)] = static_cast<int>(graph.readers(v).size());
  }
  const auto closes = [&](int v) {
    return std::count_if(graph.inputs(v).begin(), graph.inputs(v).end(),
                         [&](int u) { return readers[Index(u)] == 1; });
  };
  std::vector<int> order, ready = {graph.source()};
  while (!ready.empty()) {
    const size_t first = ready.size() > kChoices ? ready.size() - kChoices : 0;
    size_t best = ready.size() - 1;
    auto most = closes(ready[best]);
    for (size_t i = best; i-- > first;) {
      const auto closed = closes(ready[i]);
      if (closed > most) std::tie(best, most) = std::pair(i, closed);
    }
    const int v = ready[best];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    order.push_back(v);
    for (const int u : graph.inputs(v)) --readers[Index(u)];
    const auto next = graph.readers(v);
    for (size_t i = next.size(); i-- > 0;) {
      if (--waits[Index(next[i])] == 0) ready.push_back(next[i]);
    }
  }
  return order;
}

std::optional<FrontierOrder> WithSlots(const CheckpointGraph& graph,
                                       const std::vector<int>& order) {
  FrontierOrder result;
  std::vector<int>& slot = result.slot;
  slot.resize(Index(graph.size()));
  std::vector<int> readers(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    readers[Index(v)] = static_cast<int>(graph.readers(v).size());
  }
  uint64_t used = 0;
  for (const int v : order) {
    if (~used == 0) return std::nullopt;
    FrontierStep step = {v, __builtin_ctzll(~used), 0, 0};
    slot[Index(v)] = step.slot;
    used |= Bit(step.slot);
    result.widest = std::max(result.widest, __builtin_popcountll(used));
    for (const int u : graph.inputs(v)) {
      step.reads |= Bit(slot[Index(u)]);
      if (--readers[Index(u)] == 0) step.ends |= Bit(slot[Index(u)]);
    }
    if (graph.readers(v).empty()) step.ends |= Bit(step.slot);
    used &= ~step.ends;
    result.steps.push_back(step);
  }
  return result;
}

}  // namespace

std::optional<FrontierOrder> MakeFrontierOrder(const CheckpointGraph& graph) {
  std::vector<int> own(Index(graph.size()));
  std::iota(own.begin(), own.end(), 0);
  std::optional<FrontierOrder> as_given = WithSlots(graph, own);
  std::optional<FrontierOrder> narrow = WithSlots(graph, NarrowOrder(graph));
  if (!as_given || (narrow && narrow->widest < as_given->widest)) return narrow;
  return as_given;
}

}  // namespace stowage
