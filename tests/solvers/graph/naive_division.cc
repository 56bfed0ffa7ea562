#include "tests/solvers/graph/naive_division.h"

#include <algorithm>
#include <tuple>

namespace stowage::testing {
namespace {

using Set = uint32_t;

Set Bit(int v) { return Set{1} << v; }

struct Segment {
  int start;
  int end;
  Set inside;
  bool direct;  // the edge from start to end is part of it
};

class NaiveDivision {
 public:
  explicit NaiveDivision(const CheckpointGraph& graph) : size_(graph.size()) {
    neighbours_.assign(static_cast<size_t>(size_), 0);
    readers_ = inputs_ = neighbours_;
    for (int v = 0; v < size_; ++v) {
      for (const int u : graph.inputs(v)) {
        Of(&readers_, u) |= Bit(v);
        Of(&inputs_, v) |= Bit(u);
        Of(&neighbours_, u) |= Bit(v);
        Of(&neighbours_, v) |= Bit(u);
      }
    }
    const int last = size_ - 1;
    const Set all = size_ < 2 ? 0 : (Bit(size_) - 1) & ~Bit(0) & ~Bit(last);
    Divide({0, last, all, size_ > 1 && HasEdge(0, last)});
  }

  std::vector<NaiveNode> nodes;

 private:
  static Set& Of(std::vector<Set>* sets, int v) { return (*sets)[static_cast<size_t>(v)]; }
  bool HasEdge(int u, int v) { return (Of(&readers_, u) & Bit(v)) != 0; }

  // What is reached from `from` along `next` without leaving `within`.
  Set Closure(Set from, std::vector<Set>* next, Set within) {
    Set reached = 0;
    for (Set fresh = from; fresh != 0;) {
      reached |= fresh;
      Set ahead = 0;
      for (int v = 0; v < size_; ++v) {
        if ((fresh & Bit(v)) != 0) ahead |= Of(next, v);
      }
      fresh = ahead & within & ~reached;
    }
    return reached;
  }

  std::vector<Segment> Between(const Segment& s) {
    std::vector<int> splitting;
    for (int v = s.start + 1; v < s.end && !s.direct; ++v) {
      const Set rest = (s.inside | Bit(s.end)) & ~Bit(v);
      const Set first = Of(&readers_, s.start) & rest & (s.inside | Set{0});
      const bool split =
          (s.inside & Bit(v)) != 0 && (Closure(first, &readers_, rest) & Bit(s.end)) == 0;
      if (split) splitting.push_back(v);
    }
    if (splitting.empty()) return {};
    std::vector<Segment> chain;
    int start = s.start;
    splitting.push_back(s.end);
    for (const int end : splitting) {
      const Set below = Closure(Of(&readers_, start) & s.inside, &readers_, s.inside);
      const Set above = Closure(Of(&inputs_, end) & s.inside, &inputs_, s.inside);
      chain.push_back({start, end, below & above & ~Bit(start) & ~Bit(end), HasEdge(start, end)});
      start = end;
    }
    return chain;
  }

  std::vector<Segment> Beside(const Segment& s) {
    std::vector<Segment> branches;
    if (s.direct) branches.push_back({s.start, s.end, 0, true});
    for (Set left = s.inside; left != 0;) {
      const Set part = Closure(left & (~left + 1), &neighbours_, s.inside);
      branches.push_back({s.start, s.end, part, false});
      left &= ~part;
    }
    return branches;
  }

  // The largest segment between two vertices of s.
  Segment Largest(const Segment& s, int start, int end) {
    Segment largest{start, end, 0, HasEdge(start, end)};
    for (Set left = s.inside & ~Bit(start) & ~Bit(end); left != 0;) {
      const Set part =
          Closure(left & (~left + 1), &neighbours_, s.inside & ~Bit(start) & ~Bit(end));
      left &= ~part;
      bool within = true;
      for (int v = 0; v < size_; ++v) {
        if ((part & Bit(v)) == 0) continue;
        within &= (Of(&inputs_, v) & ~(part | Bit(start))) == 0;
        within &= (Of(&readers_, v) & ~(part | Bit(end))) == 0;
      }
      if (within) largest.inside |= part;
    }
    return largest;
  }

  // Whether all edges of a are edges of b.
  static bool IsPart(const Segment& a, const Segment& b) {
    const Set b_all = b.inside | Bit(b.start) | Bit(b.end);
    if ((a.inside & ~b.inside) != 0) return false;
    if (((Bit(a.start) | Bit(a.end)) & ~b_all) != 0) return false;
    const bool same_ends = a.start == b.start && a.end == b.end;
    if (a.direct && same_ends) return b.direct;
    return true;
  }

  std::vector<Segment> Within(const Segment& s) {
    const Set all = s.inside | Bit(s.start) | Bit(s.end);
    std::vector<Segment> parts;
    for (int start = 0; start < size_; ++start) {
      for (int end = start + 1; end < size_; ++end) {
        if ((all & Bit(start)) == 0 || (all & Bit(end)) == 0) continue;
        if (start == s.start && end == s.end) continue;
        const Segment part = Largest(s, start, end);
        if (part.inside != 0 || part.direct) parts.push_back(part);
      }
    }
    std::vector<Segment> largest;
    for (const Segment& a : parts) {
      const bool inner = std::any_of(parts.begin(), parts.end(), [&a](const Segment& b) {
        return IsPart(a, b) && !IsPart(b, a);
      });
      if (!inner) largest.push_back(a);
    }
    return largest;
  }

  void Divide(const Segment& s) {
    DivisionKind kind = DivisionKind::kEdge;
    std::vector<Segment> children;
    if (s.inside != 0) {
      kind = DivisionKind::kLinear;
      children = Between(s);
      if (children.empty()) {
        kind = DivisionKind::kBranch;
        children = Beside(s);
        if (children.size() < 2) {
          kind = DivisionKind::kRigid;
          children = Within(s);
        }
      }
    }
    nodes.push_back({kind, s.start, s.end, s.inside, static_cast<int>(children.size())});
    std::sort(children.begin(), children.end(), [](const Segment& a, const Segment& b) {
      return std::tuple(a.start, a.end, a.inside & (~a.inside + 1)) <
             std::tuple(b.start, b.end, b.inside & (~b.inside + 1));
    });
    for (const Segment& child : children) Divide(child);
  }

  const int size_;
  std::vector<Set> neighbours_, readers_, inputs_;
};

void FlattenNode(const DivisionTree& tree, int n, std::vector<NaiveNode>* nodes) {
  const DivisionNode& node = tree.node(n);
  Set inside = 0;
  for (const int v : tree.interior(n)) inside |= Bit(v);
  nodes->push_back({node.kind, node.start, node.end, inside, node.child_count});
  for (int c = node.first_child; c < node.first_child + node.child_count; ++c) {
    FlattenNode(tree, c, nodes);
  }
}

}  // namespace

std::vector<NaiveNode> DivideNaively(const CheckpointGraph& graph) {
  return NaiveDivision(graph).nodes;
}

std::vector<NaiveNode> Flatten(const DivisionTree& tree) {
  std::vector<NaiveNode> nodes;
  FlattenNode(tree, DivisionTree::kRoot, &nodes);
  return nodes;
}

}  // namespace stowage::testing
