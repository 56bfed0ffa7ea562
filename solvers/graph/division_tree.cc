#include "solvers/graph/division_tree.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "solvers/graph/internal/polled_loops.h"
#include "solvers/graph/internal/triconnected_components.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Of a loop that looks at an edge of a component.

DivisionKind DivisionKindOf(ComponentKind kind) {
  switch (kind) {
    case ComponentKind::kCycle:
      return DivisionKind::kLinear;
    case ComponentKind::kBond:
      return DivisionKind::kBranch;
    case ComponentKind::kRigid:
      break;
  }
  return DivisionKind::kRigid;
}

// The components as a tree: each hangs on the edge that it shares with its parent.
class HungComponents {
 public:
  explicit HungComponents(const TriconnectedComponents& parts) : parts_(parts) {
    above_.assign(Index(parts.size()), kNoIndex);
    first_inside_.assign(Index(parts.size()), std::numeric_limits<int>::max());
  }

  // Below the component that has the edge.
  absl::Status HangOn(int reference, StopPoll* poll) {
    root_ = parts_.components_of[Index(reference)].first;
    above_[Index(root_)] = reference;
    order_.push_back(root_);
    absl::Status status;
    for (size_t k = 0; k < order_.size() && status.ok(); ++k) {
      const absl::Span<const int> edges = parts_.edges_of(order_[k]);
      const auto hang = [&](size_t i) {
        const int below = Below(order_[k], edges[i]);
        if (below == kNoIndex) return;
        above_[Index(below)] = edges[i];
        order_.push_back(below);
      };
      status = PolledLoop(edges.size(), kVisitSteps, hang, poll);
    }
    for (size_t k = order_.size(); k-- > 0 && status.ok();) {
      status = FindFirstInside(order_[k], poll);
    }
    return status;
  }

  int root() const { return root_; }
  int above(int c) const { return above_[Index(c)]; }
  // The component under edge `e` of `c`; kNoIndex if it is a given edge or the one above.
  int Below(int c, int e) const {
    if (e == above_[Index(c)]) return kNoIndex;
    const auto& [one, other] = parts_.components_of[Index(e)];
    return one == c ? other : one;
  }
  // The smallest vertex inside; kNoIndex comes before all for a given edge.
  int FirstInside(int c) const { return c == kNoIndex ? kNoIndex : first_inside_[Index(c)]; }

 private:
  absl::Status FindFirstInside(int c, StopPoll* poll) {
    const auto& [start, end] = parts_.edges[Index(above_[Index(c)])];
    int& first = first_inside_[Index(c)];
    const absl::Span<const int> edges = parts_.edges_of(c);
    const auto find = [&, start = start, end = end](size_t i) {
      const auto& [a, b] = parts_.edges[Index(edges[i])];
      for (const int v : {a, b}) {
        if (v != start && v != end) first = std::min(first, v);
      }
      const int below = Below(c, edges[i]);
      if (below != kNoIndex) first = std::min(first, first_inside_[Index(below)]);
    };
    return PolledLoop(edges.size(), kVisitSteps, find, poll);
  }

  const TriconnectedComponents& parts_;
  int root_ = kNoIndex;
  std::vector<int> above_;
  std::vector<int> first_inside_;
  std::vector<int> order_;
};

}  // namespace

class DivisionTreeBuilder {
 public:
  explicit DivisionTreeBuilder(const CheckpointGraph& graph) : graph_(graph) {}

  absl::StatusOr<DivisionTree> Build(StopPoll* poll) {
    if (graph_.size() < 3) {
      AddNode(kNoIndex, {graph_.source(), graph_.target(), kNoIndex, kNoIndex});
    } else {
      const absl::Status status = Divide(poll);
      if (!status.ok()) return status;
    }
    absl::Status status = PlaceVertices(poll);
    if (!status.ok()) return status;
    return std::move(tree_);
  }

 private:
  struct Child {
    int start;
    int end;
    int first_inside;
    int component;  // kNoIndex: an edge
  };

  void AddNode(int parent, const Child& child) {
    DivisionNode node;
    node.start = child.start;
    node.end = child.end;
    node.parent = parent;
    tree_.nodes_.push_back(node);
    component_.push_back(child.component);
  }

  absl::Status Divide(StopPoll* poll) {
    std::vector<std::pair<int, int>> edges = {{graph_.source(), graph_.target()}};
    bool direct = false;
    const auto add_inputs = [&](int v) {
      for (const int u : graph_.inputs(v)) {
        const bool is_direct = u == graph_.source() && v == graph_.target();
        direct |= is_direct;
        if (!is_direct) edges.push_back({u, v});
      }
    };
    edges.reserve(graph_.edge_count() + 1);
    absl::Status status = PolledVertices(graph_, add_inputs, poll);
    if (!status.ok()) return status;
    const absl::StatusOr<TriconnectedComponents> parts =
        FindTriconnectedComponents(graph_.size(), edges, poll);
    if (!parts.ok()) return parts.status();
    HungComponents hung(*parts);
    status = hung.HangOn(0, poll);
    if (!status.ok()) return status;
    const bool beside_edge = direct && parts->kinds[Index(hung.root())] != ComponentKind::kBond;
    // A node for every edge, the one above aside, of every component; and the root's two.
    tree_.nodes_.reserve(parts->members.size() + 2);
    component_.reserve(parts->members.size() + 2);
    status = StartAtRoot(hung.root(), beside_edge, poll);
    if (!status.ok()) return status;
    std::vector<Child> children;
    for (int n = first_divided_; n < tree_.size(); ++n) {
      const int component = component_[Index(n)];
      if (component == kNoIndex) continue;
      status = CollectChildren(*parts, hung, component, &children, poll);
      if (!status.ok()) return status;
      const bool add_direct = direct && n == DivisionTree::kRoot;
      if (add_direct) children.push_back({graph_.source(), graph_.target(), kNoIndex, kNoIndex});
      status = AddChildren(n, DivisionKindOf(parts->kinds[Index(component)]), &children, poll);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // A direct edge from source to target, left out so far, is a branch beside all the rest.
  absl::Status StartAtRoot(int component, bool beside_edge, StopPoll* poll) {
    const Child whole = {graph_.source(), graph_.target(), graph_.source() + 1, component};
    AddNode(kNoIndex, whole);
    if (!beside_edge) return absl::OkStatus();
    component_[0] = kNoIndex;
    std::vector<Child> children = {{whole.start, whole.end, kNoIndex, kNoIndex}, whole};
    first_divided_ = 1;
    return AddChildren(DivisionTree::kRoot, DivisionKind::kBranch, &children, poll);
  }

  static absl::Status CollectChildren(const TriconnectedComponents& parts,
                                      const HungComponents& hung, int component,
                                      std::vector<Child>* children, StopPoll* poll) {
    children->clear();
    const absl::Span<const int> edges = parts.edges_of(component);
    const auto collect = [&](size_t k) {
      if (edges[k] == hung.above(component)) return;
      const auto& [a, b] = parts.edges[Index(edges[k])];
      const int below = hung.Below(component, edges[k]);
      children->push_back({std::min(a, b), std::max(a, b), hung.FirstInside(below), below});
    };
    return PolledLoop(edges.size(), kVisitSteps, collect, poll);
  }

  absl::Status AddChildren(int n, DivisionKind kind, std::vector<Child>* children, StopPoll* poll) {
    const auto earlier = [](const Child& a, const Child& b) {
      return std::tie(a.start, a.end, a.first_inside) < std::tie(b.start, b.end, b.first_inside);
    };
    const absl::Status status = PolledSort(earlier, children, poll);
    if (!status.ok()) return status;
    DivisionNode& node = tree_.nodes_[Index(n)];
    node.kind = kind;
    node.first_child = tree_.size();
    node.child_count = static_cast<int>(children->size());
    return PolledLoop(
        children->size(), 1 << 4, [&](size_t c) { AddNode(n, (*children)[c]); }, poll);
  }

  // The vertices that begin a child of the node, other than its start, rising.
  absl::StatusOr<std::vector<int>> Connecting(const DivisionNode& node, StopPoll* poll) const {
    std::vector<int> connecting;
    const auto add = [&](size_t k) {
      const int v = tree_.node(node.first_child + static_cast<int>(k)).start;
      if (v != node.start && (connecting.empty() || connecting.back() != v)) {
        connecting.push_back(v);
      }
    };
    const absl::Status status = PolledLoop(Index(node.child_count), kVisitSteps, add, poll);
    if (!status.ok()) return status;
    return connecting;
  }

  absl::Status PlaceVertices(StopPoll* poll) {
    const size_t size = Index(tree_.size());
    std::vector<int> inside(size, 0);
    std::vector<std::vector<int>> connecting(size);
    absl::Status status = poll->Spend(tree_.size());
    if (!status.ok()) return status;
    for (int n = tree_.size() - 1; n >= 0; --n) {
      DivisionNode& node = tree_.nodes_[Index(n)];
      absl::StatusOr<std::vector<int>> own = Connecting(node, poll);
      if (!own.ok()) return own.status();
      connecting[Index(n)] = *std::move(own);
      inside[Index(n)] += static_cast<int>(connecting[Index(n)].size());
      for (const int v : connecting[Index(n)]) node.bytes += graph_.bytes(v);
      if (node.parent != kNoIndex) {
        inside[Index(node.parent)] += inside[Index(n)];
        tree_.nodes_[Index(node.parent)].bytes += node.bytes;
      }
      status = poll->Spend(static_cast<int64_t>(connecting[Index(n)].size() + 8) << 2);
      if (!status.ok()) return status;
    }
    tree_.spans_.resize(size);
    tree_.inside_.resize(Index(inside[0]));
    for (int n = 0; n < tree_.size() && status.ok(); ++n) {
      DivisionTree::InteriorSpan& span = tree_.spans_[Index(n)];
      const std::vector<int>& own = connecting[Index(n)];
      std::copy(own.begin(), own.end(), tree_.inside_.begin() + span.begin);
      span.own_end = span.begin + static_cast<int>(own.size());
      span.end = span.begin + inside[Index(n)];
      int next = span.own_end;
      const DivisionNode& node = tree_.node(n);
      const auto place = [&](size_t k) {
        const size_t c = Index(node.first_child) + k;
        tree_.spans_[c].begin = next;
        next += inside[c];
      };
      status = PolledLoop(Index(node.child_count), kVisitSteps, place, poll);
      if (status.ok()) status = poll->Spend(kVisitSteps);
    }
    return status;
  }

  const CheckpointGraph& graph_;
  DivisionTree tree_;
  std::vector<int> component_;  // of each node
  int first_divided_ = 0;
};

absl::StatusOr<DivisionTree> DivisionTree::Build(const CheckpointGraph& graph, StopPoll* poll) {
  return DivisionTreeBuilder(graph).Build(poll);
}

int DivisionTree::depth() const {
  std::vector<int> level(nodes_.size(), 0);
  int deepest = 0;
  for (int n = 1; n < size(); ++n) {
    level[Index(n)] = level[Index(node(n).parent)] + 1;
    deepest = std::max(deepest, level[Index(n)]);
  }
  return deepest;
}

const char* ToString(DivisionKind kind) {
  switch (kind) {
    case DivisionKind::kEdge:
      return "edge";
    case DivisionKind::kLinear:
      return "linear";
    case DivisionKind::kBranch:
      return "branch";
    case DivisionKind::kRigid:
      break;
  }
  return "rigid";
}

}  // namespace stowage
