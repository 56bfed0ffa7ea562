#include "solvers/graph/triconnected_components.h"

#include <cstdint>
#include <numeric>

#include "solvers/graph/split_components.h"

namespace stowage {
namespace {

constexpr int kNone = TriconnectedComponents::kNone;

size_t Index(int i) { return static_cast<size_t>(i); }

std::vector<ComponentKind> KindsOf(const SplitComponents& split, int vertices) {
  std::vector<ComponentKind> kinds;
  std::vector<int> seen_in(Index(vertices), kNone);
  for (int c = 0; c < split.size(); ++c) {
    size_t joined = 0;
    for (size_t k = split.first[Index(c)]; k < split.first[Index(c) + 1]; ++k) {
      const auto& [a, b] = split.edges[Index(split.members[k])];
      for (const int v : {a, b}) {
        joined += seen_in[Index(v)] != c ? 1 : 0;
        seen_in[Index(v)] = c;
      }
    }
    const size_t edges = split.first[Index(c) + 1] - split.first[Index(c)];
    kinds.push_back(joined == 2       ? ComponentKind::kBond
                    : joined == edges ? ComponentKind::kCycle
                                      : ComponentKind::kRigid);
  }
  return kinds;
}

// The components that each edge is in.
std::vector<std::pair<int, int>> OwnersOf(const SplitComponents& split) {
  std::vector<std::pair<int, int>> owners(split.edges.size(), {kNone, kNone});
  for (int c = 0; c < split.size(); ++c) {
    for (size_t k = split.first[Index(c)]; k < split.first[Index(c) + 1]; ++k) {
      auto& [one, other] = owners[Index(split.members[k])];
      (one == kNone ? one : other) = c;
    }
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

}  // namespace

absl::StatusOr<TriconnectedComponents> FindTriconnectedComponents(
    int vertices, const std::vector<std::pair<int, int>>& edges, StopPoll* poll) {
  absl::StatusOr<SplitComponents> split = FindSplitComponents(vertices, edges, poll);
  if (!split.ok()) return split.status();
  const int64_t steps = static_cast<int64_t>(split->edges.size()) << 3;
  absl::Status status = poll->Spend(steps);
  if (!status.ok()) return status;
  const std::vector<ComponentKind> kinds = KindsOf(*split, vertices);
  std::vector<std::pair<int, int>> owners = OwnersOf(*split);
  status = poll->Spend(steps);
  if (!status.ok()) return status;

  // Bonds that meet in a virtual edge are one bond, cycles one cycle.
  std::vector<int> parent(kinds.size());
  std::iota(parent.begin(), parent.end(), 0);
  for (auto& [one, other] : owners) {
    if (other == kNone || kinds[Index(one)] == ComponentKind::kRigid ||
        kinds[Index(one)] != kinds[Index(other)]) {
      continue;
    }
    parent[Index(RootOf(&parent, one))] = RootOf(&parent, other);
    one = other = kNone;
  }
  status = poll->Spend(steps);
  if (!status.ok()) return status;

  TriconnectedComponents result;
  std::vector<int> number(kinds.size(), kNone);
  for (int c = 0; c < split->size(); ++c) {
    if (RootOf(&parent, c) != c) continue;
    number[Index(c)] = result.size();
    result.kinds.push_back(kinds[Index(c)]);
  }
  result.first.assign(Index(result.size()) + 2, 0);
  for (auto& [one, other] : owners) {
    for (int* owner : {&one, &other}) {
      if (*owner == kNone) continue;
      *owner = number[Index(RootOf(&parent, *owner))];
      ++result.first[Index(*owner) + 2];
    }
  }
  for (size_t c = 2; c < result.first.size(); ++c) result.first[c] += result.first[c - 1];
  result.members.resize(result.first.back());
  for (size_t e = 0; e < owners.size(); ++e) {
    for (const int owner : {owners[e].first, owners[e].second}) {
      if (owner != kNone) result.members[result.first[Index(owner) + 1]++] = static_cast<int>(e);
    }
  }
  result.first.pop_back();
  result.edges = std::move(split->edges);
  result.components_of = std::move(owners);
  return result;
}

}  // namespace stowage
