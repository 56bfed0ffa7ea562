#include "solvers/graph/internal/triconnected_components.h"

#include <algorithm>

#include "absl/status/status.h"
#include "solvers/graph/internal/polled_loops.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Both ends of every edge in one array.
struct Incidence {
  std::vector<size_t> first;
  std::vector<int> edges;
};

absl::StatusOr<Incidence> MakeIncidence(int vertices, const std::vector<std::pair<int, int>>& edges,
                                        StopPoll* poll) {
  Incidence incidence;
  std::vector<size_t>& first = incidence.first;
  first.assign(Index(vertices) + 2, 0);
  const auto count = [&](size_t e) {
    ++first[Index(edges[e].first) + 2];
    ++first[Index(edges[e].second) + 2];
  };
  absl::Status status = PolledLoop(edges.size(), kVisitSteps, count, poll);
  if (!status.ok()) return status;
  for (size_t v = 2; v < first.size(); ++v) first[v] += first[v - 1];
  incidence.edges.resize(2 * edges.size());
  const auto place = [&](size_t e) {
    for (const int v : {edges[e].first, edges[e].second}) {
      incidence.edges[first[Index(v) + 1]++] = static_cast<int>(e);
    }
  };
  status = PolledLoop(edges.size(), kVisitSteps, place, poll);
  if (!status.ok()) return status;
  first.pop_back();
  return incidence;
}

// The first search: numbers by discovery, directs the edges and finds what subtrees reach.
class FirstSearch {
 public:
  FirstSearch(int vertices, const std::vector<std::pair<int, int>>& edges) : edges_(edges) {
    const size_t n = Index(vertices);
    number.assign(n, 0);
    father.assign(n, -1);
    low.assign(n, 0);
    second_low.assign(n, 0);
    descendants.assign(n, 1);
    arcs.assign(edges.size(), PalmArc{-1, -1, false, false});
  }

  absl::Status Run(StopPoll* poll) {
    absl::StatusOr<Incidence> incidence =
        MakeIncidence(static_cast<int>(number.size()), edges_, poll);
    if (!incidence.ok()) return incidence.status();
    incidence_ = *std::move(incidence);
    next_.assign(incidence_.first.begin(), incidence_.first.end() - 1);
    std::vector<int> path;
    Discover(0, &path);
    while (!path.empty()) {
      const int v = path.back();
      if (next_[Index(v)] == incidence_.first[Index(v) + 1]) {
        path.pop_back();
        if (!path.empty()) Return(path.back(), v);
        absl::Status status = poll->Spend(1 << 6);
        if (!status.ok()) return status;
        continue;
      }
      const int e = incidence_.edges[next_[Index(v)]++];
      PalmArc& arc = arcs[Index(e)];
      if (arc.from >= 0) continue;
      const auto& [a, b] = edges_[Index(e)];
      arc.from = v;
      arc.to = a == v ? b : a;
      arc.tree = number[Index(arc.to)] == 0;
      if (arc.tree) {
        father[Index(arc.to)] = v;
        Discover(arc.to, &path);
      } else {
        Reach(v, number[Index(arc.to)]);
      }
    }
    return absl::OkStatus();
  }

  // By vertex; the arcs join vertices.
  std::vector<int> number;
  std::vector<int> father;
  std::vector<int> low;
  std::vector<int> second_low;
  std::vector<int> descendants;
  std::vector<PalmArc> arcs;

 private:
  void Discover(int v, std::vector<int>* path) {
    number[Index(v)] = low[Index(v)] = second_low[Index(v)] = ++count_;
    path->push_back(v);
  }
  void Reach(int v, int reached) {
    if (reached < low[Index(v)]) {
      second_low[Index(v)] = low[Index(v)];
      low[Index(v)] = reached;
    } else if (reached > low[Index(v)]) {
      second_low[Index(v)] = std::min(second_low[Index(v)], reached);
    }
  }
  void Return(int v, int child) {
    Reach(v, low[Index(child)]);
    Reach(v, second_low[Index(child)]);
    descendants[Index(v)] += descendants[Index(child)];
  }

  const std::vector<std::pair<int, int>>& edges_;
  Incidence incidence_;
  std::vector<size_t> next_;
  int count_ = 0;
};

// Edges sorted by the vertex they leave and, there, by how far up they lead; of those that lead to
// the same one, subtrees that reach a second vertex above come first and the others last.
absl::Status SortArcs(const FirstSearch& search, PalmTree* tree, StopPoll* poll) {
  const size_t n = search.number.size();
  const size_t m = search.arcs.size();
  const auto rank = [&search](const PalmArc& arc) {
    if (!arc.tree) return 3 * Index(search.number[Index(arc.to)]) + 1;
    const bool one = search.second_low[Index(arc.to)] >= search.number[Index(arc.from)];
    return 3 * Index(search.low[Index(arc.to)]) + (one ? 2 : 0);
  };
  std::vector<size_t> begin(3 * n + 5, 0);
  const auto count = [&](size_t e) { ++begin[rank(search.arcs[e]) + 1]; };
  absl::Status status = PolledLoop(m, kVisitSteps, count, poll);
  if (!status.ok()) return status;
  for (size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  std::vector<int> ranked(m);
  const auto place = [&](size_t e) { ranked[begin[rank(search.arcs[e])]++] = static_cast<int>(e); };
  status = PolledLoop(m, kVisitSteps, place, poll);
  if (!status.ok()) return status;

  tree->first.assign(n + 2, 0);
  const auto leave = [&](size_t e) { ++tree->first[Index(search.arcs[e].from) + 1]; };
  status = PolledLoop(m, kVisitSteps, leave, poll);
  if (!status.ok()) return status;
  for (size_t v = 1; v < tree->first.size(); ++v) tree->first[v] += tree->first[v - 1];
  tree->order.resize(m);
  std::vector<size_t> next(tree->first.begin(), tree->first.end());
  const auto order = [&](size_t k) {
    tree->order[next[Index(search.arcs[Index(ranked[k])].from)]++] = ranked[k];
  };
  return PolledLoop(m, kVisitSteps, order, poll);
}

// The second search, in that order: numbers the vertices anew (returned by vertex), marks where
// paths begin and lists the fronds. `tree->first` is by vertex still.
absl::StatusOr<std::vector<int>> Renumber(FirstSearch* search, PalmTree* tree, StopPoll* poll) {
  const size_t n = search->number.size();
  std::vector<int> number(n, 0);
  std::vector<size_t> next(tree->first.begin(), tree->first.end());
  int left = static_cast<int>(n);
  bool new_path = true;
  std::vector<int> path;
  const auto discover = [&](int v) {
    number[Index(v)] = left - search->descendants[Index(v)] + 1;
    path.push_back(v);
  };
  discover(0);
  while (!path.empty()) {
    const int v = path.back();
    if (next[Index(v)] == tree->first[Index(v) + 1]) {
      path.pop_back();
      --left;
      const absl::Status status = poll->Spend(1 << 6);
      if (!status.ok()) return status;
      continue;
    }
    const int e = tree->order[next[Index(v)]++];
    PalmArc& arc = search->arcs[Index(e)];
    arc.starts_path = new_path;
    new_path = !arc.tree;
    if (arc.tree) {
      discover(arc.to);
    } else {
      tree->fronds.push_back(e);
    }
  }
  return number;
}

// Writes all that is by vertex by number, and `tree->order` in the order of numbers.
absl::Status OrderByNumber(FirstSearch* search, const std::vector<int>& number, PalmTree* tree,
                           StopPoll* poll) {
  const size_t n = number.size();
  std::vector<int> renumbered(n + 1, 0);  // by the first search's number
  for (size_t v = 0; v < n; ++v) renumbered[Index(search->number[v])] = number[v];
  tree->vertex.assign(n + 1, 0);
  tree->father = tree->low = tree->second_low = tree->descendants = tree->vertex;
  const auto place = [&](size_t v) {
    const size_t k = Index(number[v]);
    tree->vertex[k] = static_cast<int>(v);
    tree->father[k] = search->father[v] < 0 ? 0 : number[Index(search->father[v])];
    tree->low[k] = renumbered[Index(search->low[v])];
    tree->second_low[k] = renumbered[Index(search->second_low[v])];
    tree->descendants[k] = search->descendants[v];
  };
  absl::Status status = PolledLoop(n, 2 * kVisitSteps, place, poll);
  tree->arcs = std::move(search->arcs);
  const auto rename = [&](size_t e) {
    PalmArc& arc = tree->arcs[e];
    arc.from = number[Index(arc.from)];
    arc.to = number[Index(arc.to)];
  };
  if (status.ok()) status = PolledLoop(tree->arcs.size(), kVisitSteps, rename, poll);
  const std::vector<int> by_vertex = std::move(tree->order);
  const std::vector<size_t> first = std::move(tree->first);
  tree->order.clear();
  tree->first.assign(2, 0);
  const auto append = [&](size_t k) {
    const size_t v = Index(tree->vertex[k + 1]);
    tree->order.insert(tree->order.end(), by_vertex.begin() + static_cast<std::ptrdiff_t>(first[v]),
                       by_vertex.begin() + static_cast<std::ptrdiff_t>(first[v + 1]));
    tree->first.push_back(tree->order.size());
  };
  if (status.ok()) status = PolledLoop(n, 4 * kVisitSteps, append, poll);
  return status;
}

}  // namespace

absl::StatusOr<PalmTree> GrowPalmTree(int vertices, const std::vector<std::pair<int, int>>& edges,
                                      StopPoll* poll) {
  FirstSearch search(vertices, edges);
  absl::Status status = search.Run(poll);
  if (!status.ok()) return status;
  PalmTree tree;
  status = SortArcs(search, &tree, poll);
  if (!status.ok()) return status;
  const absl::StatusOr<std::vector<int>> number = Renumber(&search, &tree, poll);
  if (!number.ok()) return number.status();
  status = OrderByNumber(&search, *number, &tree, poll);
  if (!status.ok()) return status;
  return tree;
}

}  // namespace stowage
