#include "solvers/graph/frontier_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "solvers/model/index.h"

namespace stowage {
namespace {

// Choosing the next vertex looks at so many that are ready, the longest waiting first.
constexpr size_t kChoices = 64;

// Counts, for every vertex, the inputs that it alone is still to read.
class ClosedInputs {
 public:
  explicit ClosedInputs(const CheckpointGraph& graph)
      : graph_(graph),
        readers_(Index(graph.size()), 0),
        all_readers_(Index(graph.size()), 0),
        closes_(Index(graph.size()), 0) {
    for (int u = 0; u < graph.size(); ++u) {
      readers_[Index(u)] = static_cast<int>(graph.readers(u).size());
      for (const int v : graph.readers(u)) all_readers_[Index(u)] ^= v;
      if (readers_[Index(u)] == 1) ++closes_[Index(all_readers_[Index(u)])];
    }
  }

  int of(int v) const { return closes_[Index(v)]; }

  void Pass(int v) {
    for (const int u : graph_.inputs(v)) {
      all_readers_[Index(u)] ^= v;
      if (--readers_[Index(u)] == 1) ++closes_[Index(all_readers_[Index(u)])];
    }
  }

 private:
  const CheckpointGraph& graph_;
  std::vector<int> readers_;      // how many are to come
  std::vector<int> all_readers_;  // that are to come, in one word: the last one is its name
  std::vector<int> closes_;
};

// Takes what closes most; among equals what was made ready last, which keeps to one branch.
absl::StatusOr<std::vector<int>> NarrowOrder(const CheckpointGraph& graph, StopPoll* poll) {
  std::vector<int> waits(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    waits[Index(v)] = static_cast<int>(graph.inputs(v).size());
  }
  ClosedInputs closes(graph);
  std::vector<int> order, ready = {graph.source()};
  while (!ready.empty()) {
    const size_t first = ready.size() > kChoices ? ready.size() - kChoices : 0;
    size_t best = ready.size() - 1;
    for (size_t i = best; i-- > first;) {
      if (closes.of(ready[i]) > closes.of(ready[best])) best = i;
    }
    const int v = ready[best];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    order.push_back(v);
    closes.Pass(v);
    const auto next = graph.readers(v);
    for (size_t i = next.size(); i-- > 0;) {
      if (--waits[Index(next[i])] == 0) ready.push_back(next[i]);
    }
    const absl::Status status =
        poll->Spend(static_cast<int64_t>(kChoices + graph.inputs(v).size() + next.size()));
    if (!status.ok()) return status;
  }
  return order;
}

// Nothing where too many are open at once.
absl::StatusOr<std::optional<FrontierOrder>> WithSlots(const CheckpointGraph& graph,
                                                       const std::vector<int>& order,
                                                       StopPoll* poll) {
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
    used |= SlotBit(step.slot);
    result.widest = std::max(result.widest, __builtin_popcountll(used));
    for (const int u : graph.inputs(v)) {
      step.reads |= SlotBit(slot[Index(u)]);
      if (--readers[Index(u)] == 0) step.ends |= SlotBit(slot[Index(u)]);
    }
    if (graph.readers(v).empty()) step.ends |= SlotBit(step.slot);
    used &= ~step.ends;
    result.steps.push_back(step);
    const absl::Status status = poll->Spend(static_cast<int64_t>(8 + graph.inputs(v).size()));
    if (!status.ok()) return status;
  }
  return result;
}

}  // namespace

absl::StatusOr<std::optional<FrontierOrder>> MakeFrontierOrder(const CheckpointGraph& graph,
                                                               StopPoll* poll) {
  std::vector<int> own(Index(graph.size()));
  std::iota(own.begin(), own.end(), 0);
  absl::StatusOr<std::optional<FrontierOrder>> as_given = WithSlots(graph, own, poll);
  if (!as_given.ok()) return as_given;
  const absl::StatusOr<std::vector<int>> order = NarrowOrder(graph, poll);
  if (!order.ok()) return order.status();
  absl::StatusOr<std::optional<FrontierOrder>> narrow = WithSlots(graph, *order, poll);
  if (!narrow.ok()) return narrow;
  const auto widest = [](const std::optional<FrontierOrder>& made) {
    return made ? made->widest : FrontierOrder::kMaxSlots + 1;
  };
  return widest(*narrow) < widest(*as_given) ? narrow : as_given;
}

}  // namespace stowage
