#include "solvers/graph/palm_tree.h"

#include <algorithm>
#include <cstdint>

namespace stowage {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

// Both ends of every edge in one array.
struct Incidence {
  std::vector<size_t> first;
  std::vector<int> edges;
};

Incidence MakeIncidence(int vertices, const std::vector<std::pair<int, int>>& edges) {
  Incidence incidence;
  incidence.first.assign(Index(vertices) + 2, 0);
  for (const auto& [a, b] : edges) {
    ++incidence.first[Index(a) + 2];
    ++incidence.first[Index(b) + 2];
  }
  for (size_t v = 2; v < incidence.first.size(); ++v) {
    incidence.first[v] += incidence.first[v - 1];
  }
  incidence.edges.resize(2 * edges.size());
  for (size_t e = 0; e < edges.size(); ++e) {
    for (const int v : {edges[e].first, edges[e].second}) {
      incidence.edges[incidence.first[Index(v) + 1]++] = static_cast<int>(e);
    }
  }
  incidence.first.pop_back();
  return incidence;
}

// The first search: numbers by discovery, directs the edges and finds what subtrees reach.
class FirstSearch {
 public:
  FirstSearch(int vertices, const std::vector<std::pair<int, int>>& edges)
      : edges_(edges), incidence_(MakeIncidence(vertices, edges)) {
    const size_t n = Index(vertices);
    number.assign(n, 0);
    father.assign(n, -1);
    low.assign(n, 0);
    second_low.assign(n, 0);
    descendants.assign(n, 1);
    arcs.assign(edges.size(), PalmArc{-1, -1, false, false});
    next_ = std::vector<size_t>(incidence_.first.begin(), incidence_.first.end() - 1);
  }

  absl::Status Run(StopPoll* poll) {
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
  const Incidence incidence_;
  std::vector<size_t> next_;
  int count_ = 0;
};

// Edges sorted by the vertex they leave and, there, by how far up they lead; of those that lead to
// the same one, subtrees that reach a second vertex above come first and the others last.
void SortArcs(const FirstSearch& search, PalmTree* tree) {
  const size_t n = search.number.size();
  const size_t m = search.arcs.size();
  const auto rank = [&search](const PalmArc& arc) {
    if (!arc.tree) return 3 * Index(search.number[Index(arc.to)]) + 1;
    const bool one = search.second_low[Index(arc.to)] >= search.number[Index(arc.from)];
    return 3 * Index(search.low[Index(arc.to)]) + (one ? 2 : 0);
  };
  std::vector<size_t> begin(3 * n + 5, 0);
  for (const PalmArc& arc : search.arcs) ++begin[rank(arc) + 1];
  for (size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  std::vector<int> ranked(m);
  for (size_t e = 0; e < m; ++e) ranked[begin[rank(search.arcs[e])]++] = static_cast<int>(e);

  tree->first.assign(n + 2, 0);
  for (const PalmArc& arc : search.arcs) ++tree->first[Index(arc.from) + 1];
  for (size_t v = 1; v < tree->first.size(); ++v) tree->first[v] += tree->first[v - 1];
  tree->order.resize(m);
  std::vector<size_t> next(tree->first.begin(), tree->first.end());
  for (const int e : ranked) tree->order[next[Index(search.arcs[Index(e)].from)]++] = e;
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

}  // namespace

absl::StatusOr<PalmTree> GrowPalmTree(int vertices, const std::vector<std::pair<int, int>>& edges,
                                      StopPoll* poll) {
  // Of a phase that looks at every edge.
  const int64_t steps = static_cast<int64_t>(edges.size()) << 4;
  absl::Status status = poll->Spend(steps);
  if (!status.ok()) return status;
  FirstSearch search(vertices, edges);
  status = search.Run(poll);
  if (!status.ok()) return status;
  PalmTree tree;
  SortArcs(search, &tree);
  status = poll->Spend(steps);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<int>> number = Renumber(&search, &tree, poll);
  if (!number.ok()) return number.status();

  const size_t n = Index(vertices);
  std::vector<int> renumbered(n + 1, 0);  // by the first search's number
  for (size_t v = 0; v < n; ++v) renumbered[Index(search.number[v])] = (*number)[v];
  tree.vertex.assign(n + 1, 0);
  tree.father = tree.low = tree.second_low = tree.descendants = tree.vertex;
  for (size_t v = 0; v < n; ++v) {
    const size_t k = Index((*number)[v]);
    tree.vertex[k] = static_cast<int>(v);
    tree.father[k] = search.father[v] < 0 ? 0 : (*number)[Index(search.father[v])];
    tree.low[k] = renumbered[Index(search.low[v])];
    tree.second_low[k] = renumbered[Index(search.second_low[v])];
    tree.descendants[k] = search.descendants[v];
  }
  tree.arcs = std::move(search.arcs);
  for (PalmArc& arc : tree.arcs) {
    arc.from = (*number)[Index(arc.from)];
    arc.to = (*number)[Index(arc.to)];
  }
  const std::vector<int> by_vertex = std::move(tree.order);
  const std::vector<size_t> first = std::move(tree.first);
  tree.order.clear();
  tree.first.assign(1, 0);
  for (size_t k = 0; k <= n; ++k) {
    if (k > 0) {
      const size_t v = Index(tree.vertex[k]);
      tree.order.insert(tree.order.end(), by_vertex.begin() + static_cast<std::ptrdiff_t>(first[v]),
                        by_vertex.begin() + static_cast<std::ptrdiff_t>(first[v + 1]));
    }
    tree.first.push_back(tree.order.size());
  }
  status = poll->Spend(steps);
  if (!status.ok()) return status;
  return tree;
}

}  // namespace stowage
