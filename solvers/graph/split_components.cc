#include "solvers/graph/split_components.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "solvers/graph/linked_lists.h"
#include "solvers/graph/palm_tree.h"

namespace stowage {
namespace {

constexpr int kNone = LinkedLists::kNone;

size_t Index(int i) { return static_cast<size_t>(i); }

// Walks the palm tree once more, with the edges passed and not yet assigned to a component on one
// stack and candidates for separation pairs {low, high} on another. All vertices are numbers of the
// palm tree; names of variables follow the paper where it has them.
class SplitSearch {
 public:
  explicit SplitSearch(const PalmTree& tree);

  absl::Status Run(StopPoll* poll);
  SplitComponents TakeResult();

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

  void Enter(int v) { path_.push_back({v, kNone, out_.front(v), arcs_at_[Index(v)], kNone}); }
  bool TakeNextArc(Frame* frame);
  void FinishTreeArc(Frame* frame);
  void OpenCandidate(int low, int h, int b);
  int SplitTypeTwo(Frame* frame, int w);
  bool IsTypeTwo(int v, int w) const {
    return v != 1 && (candidates_.back().a == v || IsSerial(w));
  }
  // Whether w has one edge above it and one tree arc below: a vertex within a polygon.
  bool IsSerial(int w) const {
    const int item = out_.front(w);
    return degree_[Index(w)] == 2 && item != kNone && to_[Index(out_.value(item))] > w;
  }
  int SplitSerial(int v, int* parallel);
  int SplitCandidate(const Frame& frame, int* parallel);
  void SplitTypeOne(Frame* frame, int w);

  // The first vertex whose frond ends at v, among those left.
  int High(int v) const {
    const int item = high_.front(v);
    return item == kNone ? 0 : high_.value(item);
  }
  int NewVirtualEdge(int from, int to);
  void Unlink(int edge) { out_.Erase(item_of_[Index(edge)]); }
  void DropHigh(int edge) {
    int& item = high_of_[Index(edge)];
    if (item != kNone) high_.Erase(item);
    item = kNone;
  }
  int PopEdge() {
    const int edge = edges_.back();
    edges_.pop_back();
    return edge;
  }
  void CountDegree(int edge, int change) {
    degree_[Index(from_[Index(edge)])] += change;
    degree_[Index(to_[Index(edge)])] += change;
  }
  bool Joins(int edge, int a, int b) const {
    const int from = from_[Index(edge)], to = to_[Index(edge)];
    return (from == a && to == b) || (from == b && to == a);
  }
  void Put(int edge) { result_.members.push_back(edge); }
  void CloseComponent() { result_.first.push_back(result_.members.size()); }
  void PutComponent(std::initializer_list<int> edges) {
    for (const int edge : edges) Put(edge);
    CloseComponent();
  }
  void PlaceArc(int item, int edge) { out_.set_value(item_of_[Index(edge)] = item, edge); }

  const PalmTree& tree_;
  std::vector<int> from_, to_;
  std::vector<int> degree_;
  std::vector<int> father_;
  std::vector<int> tree_arc_;  // that leads to a vertex
  std::vector<int> arcs_at_;   // how many leave a vertex
  LinkedLists out_;            // the arcs out of a vertex
  std::vector<int> item_of_;   // of an edge, in out_
  LinkedLists high_;           // where the fronds to a vertex come from
  std::vector<int> high_of_;   // of an edge, in high_
  std::vector<int> edges_;
  std::vector<Candidate> candidates_;
  std::vector<Frame> path_;
  SplitComponents result_;
};

SplitSearch::SplitSearch(const PalmTree& tree)
    : tree_(tree),
      degree_(tree.vertex.size(), 0),
      father_(tree.father),
      tree_arc_(tree.vertex.size(), kNone),
      arcs_at_(tree.vertex.size(), 0),
      out_(tree.vertex.size()),
      item_of_(tree.arcs.size(), kNone),
      high_(tree.vertex.size()),
      high_of_(tree.arcs.size(), kNone) {
  for (size_t e = 0; e < tree.arcs.size(); ++e) {
    const PalmArc& arc = tree.arcs[e];
    from_.push_back(arc.from);
    to_.push_back(arc.to);
    CountDegree(static_cast<int>(e), 1);
    ++arcs_at_[Index(arc.from)];
    if (arc.tree) tree_arc_[Index(arc.to)] = static_cast<int>(e);
  }
  for (const int e : tree.order) item_of_[Index(e)] = out_.Append(from_[Index(e)], e);
  for (const int e : tree.fronds) {
    high_of_[Index(e)] = high_.Append(to_[Index(e)], from_[Index(e)]);
  }
  result_.first.push_back(0);
}

int SplitSearch::NewVirtualEdge(int from, int to) {
  from_.push_back(from);
  to_.push_back(to);
  item_of_.push_back(kNone);
  high_of_.push_back(kNone);
  return static_cast<int>(from_.size()) - 1;
}

absl::Status SplitSearch::Run(StopPoll* poll) {
  candidates_.push_back({0, -1, 0});
  Enter(1);
  while (!path_.empty()) {
    if (TakeNextArc(&path_.back())) continue;
    path_.pop_back();
    if (!path_.empty()) FinishTreeArc(&path_.back());
    absl::Status status = poll->Spend(1 << 6);
    if (!status.ok()) return status;
  }
  while (!edges_.empty()) Put(PopEdge());
  CloseComponent();
  return absl::OkStatus();
}

// Candidates above `low` merge into one with it, or a new one is made.
void SplitSearch::OpenCandidate(int low, int h, int b) {
  if (candidates_.back().a > low) {
    h = 0;
    for (; candidates_.back().a > low; candidates_.pop_back()) {
      h = std::max(h, candidates_.back().h);
      b = candidates_.back().b;
    }
  }
  candidates_.push_back({h, low, b});
}

// Whether a tree arc was taken.
bool SplitSearch::TakeNextArc(Frame* frame) {
  const int v = frame->v;
  while (frame->next != kNone) {
    frame->item = frame->next;
    frame->next = out_.after(frame->item);
    frame->arc = out_.value(frame->item);
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

void SplitSearch::FinishTreeArc(Frame* frame) {
  const int v = frame->v;
  const PalmArc& arc = tree_.arcs[Index(frame->arc)];
  edges_.push_back(tree_arc_[Index(arc.to)]);
  const int w = SplitTypeTwo(frame, arc.to);
  if (tree_.second_low[Index(w)] >= v && tree_.low[Index(w)] < v &&
      (father_[Index(v)] != 1 || frame->arcs_left >= 2)) {
    SplitTypeOne(frame, w);
  }
  if (arc.starts_path) {
    while (candidates_.back().a >= 0) candidates_.pop_back();
    candidates_.pop_back();
  }
  while (candidates_.back().a >= 0 && candidates_.back().b != v && High(v) > candidates_.back().h) {
    candidates_.pop_back();
  }
  --frame->arcs_left;
}

// v, the vertex below it and the one below that make a triangle. Returns its virtual edge.
int SplitSearch::SplitSerial(int v, int* parallel) {
  const int above = PopEdge();
  const int below = PopEdge();
  Unlink(below);
  const int x = to_[Index(below)];
  const int edge = NewVirtualEdge(v, x);
  --degree_[Index(x)];
  --degree_[Index(v)];
  PutComponent({above, below, edge});
  if (!edges_.empty() && from_[Index(edges_.back())] == x && to_[Index(edges_.back())] == v) {
    *parallel = PopEdge();
    Unlink(*parallel);
    DropHigh(*parallel);
  }
  return edge;
}

// Cuts off what the topmost candidate encloses.
int SplitSearch::SplitCandidate(const Frame& frame, int* parallel) {
  const auto [h, a, b] = candidates_.back();
  candidates_.pop_back();
  while (!edges_.empty()) {
    const int edge = edges_.back();
    const int from = from_[Index(edge)], to = to_[Index(edge)];
    if (std::min(from, to) < a || std::max(from, to) > h) break;
    edges_.pop_back();
    if (Joins(edge, a, b)) {
      *parallel = edge;
      Unlink(edge);
      DropHigh(edge);
      continue;
    }
    if (item_of_[Index(edge)] != frame.item) {
      Unlink(edge);
      DropHigh(edge);
    }
    Put(edge);
    CountDegree(edge, -1);
  }
  const int edge = NewVirtualEdge(a, b);
  Put(edge);
  CloseComponent();
  return edge;
}

// Splits off what pairs {v, b} cut off below v. Returns the vertex now below v.
int SplitSearch::SplitTypeTwo(Frame* frame, int w) {
  const int v = frame->v;
  while (IsTypeTwo(v, w)) {
    const Candidate top = candidates_.back();
    if (top.a == v && father_[Index(top.b)] == v) {
      candidates_.pop_back();
      continue;
    }
    int parallel = kNone;
    int edge = IsSerial(w) ? SplitSerial(v, &parallel) : SplitCandidate(*frame, &parallel);
    const int x = to_[Index(edge)];
    if (parallel != kNone) {
      const int bond = NewVirtualEdge(v, x);
      PutComponent({parallel, edge, bond});
      --degree_[Index(x)];
      --degree_[Index(v)];
      edge = bond;
    }
    edges_.push_back(edge);
    PlaceArc(frame->item, edge);
    CountDegree(edge, 1);
    father_[Index(x)] = v;
    tree_arc_[Index(x)] = edge;
    w = x;
  }
  return w;
}

// The subtree of w reaches nothing above v but low(w).
void SplitSearch::SplitTypeOne(Frame* frame, int w) {
  const int v = frame->v;
  const int low = tree_.low[Index(w)];
  const int last = w + tree_.descendants[Index(w)] - 1;
  const auto inside = [w, last](int k) { return k >= w && k <= last; };
  while (!edges_.empty() &&
         (inside(from_[Index(edges_.back())]) || inside(to_[Index(edges_.back())]))) {
    const int edge = PopEdge();
    Put(edge);
    DropHigh(edge);
    CountDegree(edge, -1);
  }
  int edge = NewVirtualEdge(v, low);
  Put(edge);
  CloseComponent();

  if (!edges_.empty() && Joins(edges_.back(), v, low)) {
    const int parallel = PopEdge();
    if (item_of_[Index(parallel)] != frame->item) Unlink(parallel);
    const int bond = NewVirtualEdge(v, low);
    PutComponent({parallel, edge, bond});
    high_of_[Index(bond)] = high_of_[Index(parallel)];
    CountDegree(parallel, -1);
    edge = bond;
  }
  if (low != father_[Index(v)]) {
    edges_.push_back(edge);
    PlaceArc(frame->item, edge);
    if (high_of_[Index(edge)] == kNone && High(low) < v) {
      high_of_[Index(edge)] = high_.Prepend(low, v);
    }
    CountDegree(edge, 1);
    return;
  }
  // The virtual edge runs beside the tree arc to v.
  out_.Erase(frame->item);
  const int arc = tree_arc_[Index(v)];
  const int bond = NewVirtualEdge(low, v);
  PutComponent({edge, bond, arc});
  tree_arc_[Index(v)] = bond;
  PlaceArc(item_of_[Index(arc)], bond);
}

SplitComponents SplitSearch::TakeResult() {
  for (size_t e = 0; e < from_.size(); ++e) {
    result_.edges.push_back({tree_.vertex[Index(from_[e])], tree_.vertex[Index(to_[e])]});
  }
  return std::move(result_);
}

}  // namespace

absl::StatusOr<SplitComponents> FindSplitComponents(int vertices,
                                                    const std::vector<std::pair<int, int>>& edges,
                                                    StopPoll* poll) {
  const absl::StatusOr<PalmTree> tree = GrowPalmTree(vertices, edges, poll);
  if (!tree.ok()) return tree.status();
  SplitSearch search(*tree);
  const absl::Status status = search.Run(poll);
  if (!status.ok()) return status;
  return search.TakeResult();
}

}  // namespace stowage
