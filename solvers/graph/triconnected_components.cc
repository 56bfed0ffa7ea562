#include "solvers/graph/triconnected_components.h"

#include <cstdint>
#include <numeric>

#include "solvers/graph/polled_loop.h"
#include "solvers/graph/split_components.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Of a loop that looks at an edge, or at a component.

absl::StatusOr<std::vector<ComponentKind>> KindsOf(const SplitComponents& split, int vertices,
                                                   StopPoll* poll) {
  std::vector<ComponentKind> kinds;
  std::vector<int> seen_in(Index(vertices), kNoIndex);
  for (int c = 0; c < split.size(); ++c) {
    size_t joined = 0;
    const size_t first = split.first[Index(c)], edges = split.first[Index(c) + 1] - first;
    const auto see = [&](size_t k) {
      const auto& [a, b] = split.edges[Index(split.members[first + k])];
      for (const int v : {a, b}) {
        joined += seen_in[Index(v)] != c ? 1 : 0;
        seen_in[Index(v)] = c;
      }
    };
    const absl::Status status = PolledLoop(edges, kVisitSteps, see, poll);
    if (!status.ok()) return status;
    kinds.push_back(joined == 2       ? ComponentKind::kBond
                    : joined == edges ? ComponentKind::kCycle
                                      : ComponentKind::kRigid);
  }
  return kinds;
}

using Owners = std::vector<std::pair<int, int>>;

// The components that each edge is in.
absl::StatusOr<Owners> OwnersOf(const SplitComponents& split, StopPoll* poll) {
  Owners owners(split.edges.size(), {kNoIndex, kNoIndex});
  for (int c = 0; c < split.size(); ++c) {
    const size_t first = split.first[Index(c)], edges = split.first[Index(c) + 1] - first;
    const auto own = [&](size_t k) {
      auto& [one, other] = owners[Index(split.members[first + k])];
      (one == kNoIndex ? one : other) = c;
    };
    const absl::Status status = PolledLoop(edges, kVisitSteps, own, poll);
    if (!status.ok()) return status;
  }
  return owners;
}

int RootOf(std::vector<int>* parent, int c) {
  while ((*parent)[Index(c)] != c) {
    (*parent)[Index(c)] = (*parent)[Index((*parent)[Index(c)])];
    c = (*parent)[Index(c)];
  }
  return c;
}

// Bonds that meet in a virtual edge are one bond, cycles one cycle: leaves such an edge without
// owners. Returns what leads from a component to the one that stands for it.
absl::StatusOr<std::vector<int>> Join(const std::vector<ComponentKind>& kinds, Owners* owners,
                                      StopPoll* poll) {
  std::vector<int> parent(kinds.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto join = [&](size_t e) {
    auto& [one, other] = (*owners)[e];
    if (other == kNoIndex || kinds[Index(one)] == ComponentKind::kRigid ||
        kinds[Index(one)] != kinds[Index(other)]) {
      return;
    }
    parent[Index(RootOf(&parent, one))] = RootOf(&parent, other);
    one = other = kNoIndex;
  };
  const absl::Status status = PolledLoop(owners->size(), kVisitSteps, join, poll);
  if (!status.ok()) return status;
  return parent;
}

// Lists the edges of components by `components_of`.
absl::Status CollectMembers(TriconnectedComponents* components, StopPoll* poll) {
  const Owners& owners = components->components_of;
  std::vector<size_t>& first = components->first;
  first.assign(Index(components->size()) + 2, 0);
  const auto for_owners = [&](const auto& visit) {
    return PolledLoop(
        owners.size(), kVisitSteps,
        [&](size_t e) {
          for (const int owner : {owners[e].first, owners[e].second}) {
            if (owner != kNoIndex) visit(owner, static_cast<int>(e));
          }
        },
        poll);
  };
  absl::Status status = for_owners([&](int owner, int) { ++first[Index(owner) + 2]; });
  for (size_t c = 2; c < first.size(); ++c) first[c] += first[c - 1];
  if (!status.ok()) return status;
  status = poll->Spend(static_cast<int64_t>(first.back()));
  if (!status.ok()) return status;
  components->members.resize(first.back());
  status =
      for_owners([&](int owner, int e) { components->members[first[Index(owner) + 1]++] = e; });
  first.pop_back();
  return status;
}

}  // namespace

absl::StatusOr<TriconnectedComponents> FindTriconnectedComponents(
    int vertices, const std::vector<std::pair<int, int>>& edges, StopPoll* poll) {
  absl::StatusOr<SplitComponents> split = FindSplitComponents(vertices, edges, poll);
  if (!split.ok()) return split.status();
  const absl::StatusOr<std::vector<ComponentKind>> kinds = KindsOf(*split, vertices, poll);
  if (!kinds.ok()) return kinds.status();
  absl::StatusOr<Owners> owners = OwnersOf(*split, poll);
  if (!owners.ok()) return owners.status();
  absl::StatusOr<std::vector<int>> parent = Join(*kinds, &*owners, poll);
  if (!parent.ok()) return parent.status();

  TriconnectedComponents result;
  std::vector<int> number(kinds->size(), kNoIndex);
  const auto count = [&](size_t c) {
    if (RootOf(&*parent, static_cast<int>(c)) != static_cast<int>(c)) return;
    number[c] = result.size();
    result.kinds.push_back((*kinds)[c]);
  };
  absl::Status status = PolledLoop(kinds->size(), kVisitSteps, count, poll);
  const auto name = [&](size_t e) {
    for (int* owner : {&(*owners)[e].first, &(*owners)[e].second}) {
      if (*owner != kNoIndex) *owner = number[Index(RootOf(&*parent, *owner))];
    }
  };
  if (status.ok()) status = PolledLoop(owners->size(), kVisitSteps, name, poll);
  result.edges = std::move(split->edges);
  result.components_of = *std::move(owners);
  if (status.ok()) status = CollectMembers(&result, poll);
  if (!status.ok()) return status;
  return result;
}

}  // namespace stowage
