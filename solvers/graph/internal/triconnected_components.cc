#include "solvers/graph/internal/triconnected_components.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/graph/internal/polled_loops.h"
#include "solvers/model/index.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

// Many doubly linked lists whose items are numbers handed out in the order they are added; an item
// is taken out in O(1).
class LinkedLists {
 public:
  static constexpr int kNone = -1;

  explicit LinkedLists(size_t lists) : front_(lists, kNone), back_(lists, kNone) {}

  void Reserve(size_t items) { items_.reserve(items); }
  int Append(int list, int value) { return Insert(list, back_[Index(list)], kNone, value); }
  int Prepend(int list, int value) { return Insert(list, kNone, front_[Index(list)], value); }
  void Erase(int item) {
    const Item& gone = items_[Index(item)];
    Forward(gone.list, gone.before) = gone.after;
    Backward(gone.list, gone.after) = gone.before;
  }

  int front(int list) const { return front_[Index(list)]; }
  int after(int item) const { return items_[Index(item)].after; }
  int value(int item) const { return items_[Index(item)].value; }
  void set_value(int item, int value) { items_[Index(item)].value = value; }

 private:
  struct Item {
    int list;
    int before;
    int after;
    int value;
  };
  int& Forward(int list, int item) {
    return item == kNone ? front_[Index(list)] : items_[Index(item)].after;
  }
  int& Backward(int list, int item) {
    return item == kNone ? back_[Index(list)] : items_[Index(item)].before;
  }
  int Insert(int list, int before, int after, int value) {
    const int item = static_cast<int>(items_.size());
    items_.push_back({list, before, after, value});
    Forward(list, before) = item;
    Backward(list, after) = item;
    return item;
  }

  std::vector<Item> items_;
  std::vector<int> front_;
  std::vector<int> back_;
};

// The graph that a search for split components takes apart: edges get lost to components, virtual
// ones come instead. Vertices are numbers of the palm tree.
class SplitGraph {
 public:
  static constexpr int kNone = LinkedLists::kNone;

  explicit SplitGraph(size_t numbers) : degree_(numbers, 0), out_(numbers), high_(numbers) {}

  // Adds the arcs. CANCELLED or DEADLINE_EXCEEDED by `poll`.
  absl::Status Fill(const PalmTree& tree, StopPoll* poll) {
    // With about as many virtual edges; there are rarely more.
    const size_t edges = 2 * tree.arcs.size();
    for (std::vector<int>* by_edge : {&from_, &to_, &item_of_, &high_of_}) by_edge->reserve(edges);
    out_.Reserve(tree.order.size());
    high_.Reserve(tree.fronds.size());
    const auto add = [&](size_t e) {
      NewEdge(tree.arcs[e].from, tree.arcs[e].to);
      CountDegree(static_cast<int>(e), 1);
    };
    absl::Status status = PolledLoop(tree.arcs.size(), kVisitSteps, add, poll);
    const auto leave = [&](size_t k) {
      const int e = tree.order[k];
      item_of_[Index(e)] = out_.Append(from(e), e);
    };
    if (status.ok()) status = PolledLoop(tree.order.size(), kVisitSteps, leave, poll);
    const auto reach = [&](size_t k) {
      const int e = tree.fronds[k];
      high_of_[Index(e)] = high_.Append(to(e), from(e));
    };
    if (status.ok()) status = PolledLoop(tree.fronds.size(), kVisitSteps, reach, poll);
    return status;
  }

  size_t edge_count() const { return from_.size(); }
  int from(int edge) const { return from_[Index(edge)]; }
  int to(int edge) const { return to_[Index(edge)]; }
  bool Joins(int edge, int a, int b) const {
    return (from(edge) == a && to(edge) == b) || (from(edge) == b && to(edge) == a);
  }

  int NewEdge(int from, int to) {
    from_.push_back(from);
    to_.push_back(to);
    item_of_.push_back(kNone);
    high_of_.push_back(kNone);
    return static_cast<int>(from_.size()) - 1;
  }

  int degree(int v) const { return degree_[Index(v)]; }
  void CountDegree(int edge, int change) {
    degree_[Index(from(edge))] += change;
    degree_[Index(to(edge))] += change;
  }

  // The arcs out of a vertex: items of a list.
  int first_out(int v) const { return out_.front(v); }
  int next_out(int item) const { return out_.after(item); }
  int out_edge(int item) const { return out_.value(item); }
  int item_of(int edge) const { return item_of_[Index(edge)]; }
  void PlaceArc(int item, int edge) { out_.set_value(item_of_[Index(edge)] = item, edge); }
  void EraseItem(int item) { out_.Erase(item); }
  void Unlink(int edge) { out_.Erase(item_of(edge)); }

  // The first vertex whose frond ends at v, among those left; 0 if none is.
  int High(int v) const {
    const int item = high_.front(v);
    return item == kNone ? 0 : high_.value(item);
  }
  void DropHigh(int edge) {
    int& item = high_of_[Index(edge)];
    if (item != kNone) high_.Erase(item);
    item = kNone;
  }
  // `edge` stands where `other` stood.
  void CopyHigh(int other, int edge) { high_of_[Index(edge)] = high_of_[Index(other)]; }
  // `edge`, from v to `low`, is the first frond to `low`, unless it stands somewhere.
  void AddHigh(int edge, int low, int v) {
    if (high_of_[Index(edge)] == kNone) high_of_[Index(edge)] = high_.Prepend(low, v);
  }

 private:
  std::vector<int> from_, to_;
  std::vector<int> degree_;
  LinkedLists out_;           // the arcs out of a vertex
  std::vector<int> item_of_;  // of an edge, in out_
  LinkedLists high_;          // where the fronds to a vertex come from
  std::vector<int> high_of_;  // of an edge, in high_
};

// Splits a biconnected graph at all its separation pairs (Hopcroft & Tarjan 1973, as corrected by
// Gutwenger & Mutzel 2000, step 3).
//
// A split replaces the graph by two that each get a virtual edge between the pair. What cannot be
// split further is a bond of three edges, a triangle, or has no separation pair (rigid). The result
// is not unique; triconnected_components.h joins it into what is.
struct SplitComponents {
  std::vector<std::pair<int, int>> edges;  // the given ones, then the virtual ones
  // A given edge is in one component, a virtual one in two. Those of component c are
  // members[first[c]] .. members[first[c + 1] - 1].
  std::vector<int> members;
  std::vector<size_t> first;

  int size() const { return static_cast<int>(first.size()) - 1; }
};

// Walks the palm tree once more, with the edges passed and not yet assigned to a component on one
// stack and candidates for separation pairs {low, high} on another. All vertices are numbers of the
// palm tree; names of variables follow the paper where it has them.
class SplitSearch {
 public:
  SplitSearch(const PalmTree& tree, StopPoll* poll)
      : tree_(tree),
        poll_(poll),
        graph_(tree.vertex.size()),
        father_(tree.father),
        tree_arc_(tree.vertex.size(), kNoIndex),
        arcs_at_(tree.vertex.size(), 0) {
    edges_.reserve(tree.arcs.size());
    candidates_.reserve(tree.vertex.size());
    path_.reserve(tree.vertex.size());
    result_.members.reserve(3 * tree.arcs.size());
    result_.first.reserve(tree.arcs.size() + 1);
    result_.first.push_back(0);
  }

  absl::StatusOr<SplitComponents> Run() {
    absl::Status status = Prepare();
    if (status.ok()) status = Search();
    if (status.ok()) status = NameEdges();
    if (!status.ok()) return status;
    return std::move(result_);
  }

 private:
  // A possible pair {a, b} of type 2 with h the largest number in the part it cuts off; a < 0 marks
  // the begin of a path.
  struct Candidate {
    int h;
    int a;
    int b;
  };
  struct Frame {
    int v;
    int item;  // of the arc being followed, in out_
    int next;  // item after it
    int arcs_left;
    int arc;  // as it was when it was taken
  };

  absl::Status Prepare() {
    const absl::Status status = graph_.Fill(tree_, poll_);
    if (!status.ok()) return status;
    const auto count = [this](size_t e) {
      const PalmArc& arc = tree_.arcs[e];
      ++arcs_at_[Index(arc.from)];
      if (arc.tree) tree_arc_[Index(arc.to)] = static_cast<int>(e);
    };
    return PolledLoop(tree_.arcs.size(), 1 << 3, count, poll_);
  }

  absl::Status Search() {
    candidates_.push_back({0, -1, 0});
    Enter(1);
    while (!path_.empty()) {
      if (TakeNextArc(&path_.back())) continue;
      path_.pop_back();
      absl::Status status = poll_->Spend(1 << 6);
      if (status.ok() && !path_.empty()) status = FinishTreeArc(&path_.back());
      if (!status.ok()) return status;
    }
    const absl::Status status = PolledLoop(
        edges_.size(), 1 << 2, [this](size_t) { Put(PopEdge()); }, poll_);
    CloseComponent();
    return status;
  }

  absl::Status NameEdges() {
    const auto name = [this](size_t e) {
      const int edge = static_cast<int>(e);
      result_.edges.push_back(
          {tree_.vertex[Index(graph_.from(edge))], tree_.vertex[Index(graph_.to(edge))]});
    };
    result_.edges.reserve(graph_.edge_count());
    return PolledLoop(graph_.edge_count(), 1 << 3, name, poll_);
  }

  void Enter(int v) {
    path_.push_back({v, kNoIndex, graph_.first_out(v), arcs_at_[Index(v)], kNoIndex});
  }

  // Whether a tree arc was taken.
  bool TakeNextArc(Frame* frame) {
    const int v = frame->v;
    while (frame->next != kNoIndex) {
      frame->item = frame->next;
      frame->next = graph_.next_out(frame->item);
      frame->arc = graph_.out_edge(frame->item);
      const PalmArc& arc = tree_.arcs[Index(frame->arc)];
      const int w = arc.to;
      if (arc.tree) {
        if (arc.starts_path) {
          OpenCandidate(tree_.low[Index(w)], w + tree_.descendants[Index(w)] - 1, v);
          candidates_.push_back({0, -1, 0});
        }
        Enter(w);
        return true;
      }
      if (arc.starts_path) OpenCandidate(w, v, v);
      edges_.push_back(frame->arc);
    }
    return false;
  }

  absl::Status FinishTreeArc(Frame* frame) {
    const int v = frame->v;
    const PalmArc& arc = tree_.arcs[Index(frame->arc)];
    edges_.push_back(tree_arc_[Index(arc.to)]);
    const absl::StatusOr<int> below = SplitTypeTwo(frame, arc.to);
    if (!below.ok()) return below.status();
    const int w = *below;
    if (tree_.second_low[Index(w)] >= v && tree_.low[Index(w)] < v &&
        (father_[Index(v)] != 1 || frame->arcs_left >= 2)) {
      absl::Status status = SplitTypeOne(frame, w);
      if (!status.ok()) return status;
    }
    if (arc.starts_path) {
      while (candidates_.back().a >= 0) candidates_.pop_back();
      candidates_.pop_back();
    }
    while (candidates_.back().a >= 0 && candidates_.back().b != v &&
           graph_.High(v) > candidates_.back().h) {
      candidates_.pop_back();
    }
    --frame->arcs_left;
    return absl::OkStatus();
  }

  // Candidates above `low` merge into one with it, or a new one is made.
  void OpenCandidate(int low, int h, int b) {
    if (candidates_.back().a > low) {
      h = 0;
      for (; candidates_.back().a > low; candidates_.pop_back()) {
        h = std::max(h, candidates_.back().h);
        b = candidates_.back().b;
      }
    }
    candidates_.push_back({h, low, b});
  }

  // Splits off what pairs {v, b} cut off below v. Returns the vertex now below v.
  absl::StatusOr<int> SplitTypeTwo(Frame* frame, int w) {
    const int v = frame->v;
    while (IsTypeTwo(v, w)) {
      const Candidate top = candidates_.back();
      if (top.a == v && father_[Index(top.b)] == v) {
        candidates_.pop_back();
        continue;
      }
      int parallel = kNoIndex;
      const absl::StatusOr<int> split =
          IsSerial(w) ? SplitSerial(v, &parallel) : SplitCandidate(*frame, &parallel);
      if (!split.ok()) return split.status();
      int edge = *split;
      const int x = graph_.to(edge);
      if (parallel != kNoIndex) {
        const int bond = graph_.NewEdge(v, x);
        PutComponent({parallel, edge, bond});
        graph_.CountDegree(bond, -1);
        edge = bond;
      }
      edges_.push_back(edge);
      graph_.PlaceArc(frame->item, edge);
      graph_.CountDegree(edge, 1);
      father_[Index(x)] = v;
      tree_arc_[Index(x)] = edge;
      w = x;
    }
    return w;
  }

  bool IsTypeTwo(int v, int w) const {
    return v != 1 && (candidates_.back().a == v || IsSerial(w));
  }
  // Whether w has one edge above it and one tree arc below: a vertex within a polygon.
  bool IsSerial(int w) const {
    const int item = graph_.first_out(w);
    return graph_.degree(w) == 2 && item != kNoIndex && graph_.to(graph_.out_edge(item)) > w;
  }

  // v, the vertex below it and the one below that make a triangle. Returns its virtual edge.
  int SplitSerial(int v, int* parallel) {
    const int above = PopEdge();
    const int below = PopEdge();
    graph_.Unlink(below);
    const int x = graph_.to(below);
    const int edge = graph_.NewEdge(v, x);
    graph_.CountDegree(edge, -1);
    PutComponent({above, below, edge});
    if (!edges_.empty() && graph_.from(edges_.back()) == x && graph_.to(edges_.back()) == v) {
      *parallel = PopEdge();
      graph_.Unlink(*parallel);
      graph_.DropHigh(*parallel);
    }
    return edge;
  }

  // Cuts off what the topmost candidate encloses.
  absl::StatusOr<int> SplitCandidate(const Frame& frame, int* parallel) {
    const auto [h, a, b] = candidates_.back();
    candidates_.pop_back();
    while (!edges_.empty()) {
      const int edge = edges_.back();
      const int from = graph_.from(edge), to = graph_.to(edge);
      if (std::min(from, to) < a || std::max(from, to) > h) break;
      edges_.pop_back();
      absl::Status status = poll_->Spend(1 << 3);
      if (!status.ok()) return status;
      if (graph_.Joins(edge, a, b)) {
        *parallel = edge;
        graph_.Unlink(edge);
        graph_.DropHigh(edge);
        continue;
      }
      if (graph_.item_of(edge) != frame.item) {
        graph_.Unlink(edge);
        graph_.DropHigh(edge);
      }
      Put(edge);
      graph_.CountDegree(edge, -1);
    }
    const int edge = graph_.NewEdge(a, b);
    Put(edge);
    CloseComponent();
    return edge;
  }

  // The subtree of w reaches nothing above v but low(w).
  absl::Status SplitTypeOne(Frame* frame, int w) {
    const int v = frame->v;
    const int low = tree_.low[Index(w)];
    const int last = w + tree_.descendants[Index(w)] - 1;
    const auto inside = [w, last](int k) { return k >= w && k <= last; };
    while (!edges_.empty() &&
           (inside(graph_.from(edges_.back())) || inside(graph_.to(edges_.back())))) {
      const int edge = PopEdge();
      Put(edge);
      graph_.DropHigh(edge);
      graph_.CountDegree(edge, -1);
      absl::Status status = poll_->Spend(1 << 3);
      if (!status.ok()) return status;
    }
    int edge = graph_.NewEdge(v, low);
    Put(edge);
    CloseComponent();

    if (!edges_.empty() && graph_.Joins(edges_.back(), v, low)) {
      const int parallel = PopEdge();
      if (graph_.item_of(parallel) != frame->item) graph_.Unlink(parallel);
      const int bond = graph_.NewEdge(v, low);
      PutComponent({parallel, edge, bond});
      graph_.CopyHigh(parallel, bond);
      graph_.CountDegree(parallel, -1);
      edge = bond;
    }
    if (low != father_[Index(v)]) {
      edges_.push_back(edge);
      graph_.PlaceArc(frame->item, edge);
      if (graph_.High(low) < v) graph_.AddHigh(edge, low, v);
      graph_.CountDegree(edge, 1);
      return absl::OkStatus();
    }
    // The virtual edge runs beside the tree arc to v.
    graph_.EraseItem(frame->item);
    const int arc = tree_arc_[Index(v)];
    const int bond = graph_.NewEdge(low, v);
    PutComponent({edge, bond, arc});
    tree_arc_[Index(v)] = bond;
    graph_.PlaceArc(graph_.item_of(arc), bond);
    return absl::OkStatus();
  }

  int PopEdge() {
    const int edge = edges_.back();
    edges_.pop_back();
    return edge;
  }
  void Put(int edge) { result_.members.push_back(edge); }
  void CloseComponent() { result_.first.push_back(result_.members.size()); }
  void PutComponent(std::initializer_list<int> edges) {
    for (const int edge : edges) Put(edge);
    CloseComponent();
  }

  const PalmTree& tree_;
  StopPoll* const poll_;
  SplitGraph graph_;
  std::vector<int> father_;
  std::vector<int> tree_arc_;  // that leads to a vertex
  std::vector<int> arcs_at_;   // how many leave a vertex
  std::vector<int> edges_;
  std::vector<Candidate> candidates_;
  std::vector<Frame> path_;
  SplitComponents result_;
};

// `edges` join vertices 0..vertices-1, at least 3; the graph must be biconnected and simple.
// O(V + E). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<SplitComponents> FindSplitComponents(int vertices,
                                                    const std::vector<std::pair<int, int>>& edges,
                                                    StopPoll* poll) {
  const absl::StatusOr<PalmTree> tree = GrowPalmTree(vertices, edges, poll);
  if (!tree.ok()) return tree.status();
  return SplitSearch(*tree, poll).Run();
}

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
