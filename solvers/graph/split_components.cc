#include "solvers/graph/split_components.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "solvers/graph/palm_tree.h"
#include "solvers/graph/polled_loop.h"
#include "solvers/graph/split_graph.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Walks the palm tree once more, with the edges passed and not yet assigned to a component on one
// stack and candidates for separation pairs {low, high} on another. All vertices are numbers of the
// palm tree; names of variables follow the paper where it has them.
class SplitSearch {
 public:
  SplitSearch(const PalmTree& tree, StopPoll* poll);

  absl::StatusOr<SplitComponents> Run();

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

  absl::Status Prepare();
  absl::Status Search();
  absl::Status NameEdges();
  void Enter(int v) {
    path_.push_back({v, kNoIndex, graph_.first_out(v), arcs_at_[Index(v)], kNoIndex});
  }
  bool TakeNextArc(Frame* frame);
  absl::Status FinishTreeArc(Frame* frame);
  void OpenCandidate(int low, int h, int b);
  absl::StatusOr<int> SplitTypeTwo(Frame* frame, int w);
  bool IsTypeTwo(int v, int w) const {
    return v != 1 && (candidates_.back().a == v || IsSerial(w));
  }
  // Whether w has one edge above it and one tree arc below: a vertex within a polygon.
  bool IsSerial(int w) const {
    const int item = graph_.first_out(w);
    return graph_.degree(w) == 2 && item != kNoIndex && graph_.to(graph_.out_edge(item)) > w;
  }
  int SplitSerial(int v, int* parallel);
  absl::StatusOr<int> SplitCandidate(const Frame& frame, int* parallel);
  absl::Status SplitTypeOne(Frame* frame, int w);

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

SplitSearch::SplitSearch(const PalmTree& tree, StopPoll* poll)
    : tree_(tree),
      poll_(poll),
      graph_(tree.vertex.size()),
      father_(tree.father),
      tree_arc_(tree.vertex.size(), kNoIndex),
      arcs_at_(tree.vertex.size(), 0) {
  result_.first.push_back(0);
}

absl::StatusOr<SplitComponents> SplitSearch::Run() {
  absl::Status status = Prepare();
  if (status.ok()) status = Search();
  if (status.ok()) status = NameEdges();
  if (!status.ok()) return status;
  return std::move(result_);
}

absl::Status SplitSearch::Prepare() {
  const absl::Status status = graph_.Fill(tree_, poll_);
  if (!status.ok()) return status;
  const auto count = [this](size_t e) {
    const PalmArc& arc = tree_.arcs[e];
    ++arcs_at_[Index(arc.from)];
    if (arc.tree) tree_arc_[Index(arc.to)] = static_cast<int>(e);
  };
  return PolledLoop(tree_.arcs.size(), 1 << 3, count, poll_);
}

absl::Status SplitSearch::Search() {
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

absl::Status SplitSearch::FinishTreeArc(Frame* frame) {
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

// v, the vertex below it and the one below that make a triangle. Returns its virtual edge.
int SplitSearch::SplitSerial(int v, int* parallel) {
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
absl::StatusOr<int> SplitSearch::SplitCandidate(const Frame& frame, int* parallel) {
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

// Splits off what pairs {v, b} cut off below v. Returns the vertex now below v.
absl::StatusOr<int> SplitSearch::SplitTypeTwo(Frame* frame, int w) {
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

// The subtree of w reaches nothing above v but low(w).
absl::Status SplitSearch::SplitTypeOne(Frame* frame, int w) {
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

absl::Status SplitSearch::NameEdges() {
  const auto name = [this](size_t e) {
    const int edge = static_cast<int>(e);
    result_.edges.push_back(
        {tree_.vertex[Index(graph_.from(edge))], tree_.vertex[Index(graph_.to(edge))]});
  };
  result_.edges.reserve(graph_.edge_count());
  return PolledLoop(graph_.edge_count(), 1 << 3, name, poll_);
}

}  // namespace

absl::StatusOr<SplitComponents> FindSplitComponents(int vertices,
                                                    const std::vector<std::pair<int, int>>& edges,
                                                    StopPoll* poll) {
  const absl::StatusOr<PalmTree> tree = GrowPalmTree(vertices, edges, poll);
  if (!tree.ok()) return tree.status();
  return SplitSearch(*tree, poll).Run();
}

}  // namespace stowage
