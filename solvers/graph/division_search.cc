#include "solvers/graph/division_search.h"

#include <algorithm>

namespace stowage {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

DivisionSearch::DivisionSearch(const CheckpointGraph& graph, const DivisionTree& tree,
                               const DivisionCosts& costs)
    : graph_(graph), tree_(tree), costs_(costs) {
  MakeStops();
}

void DivisionSearch::MakeStops() {
  for (int n = 0; n < tree_.size(); ++n) {
    first_stop_.push_back(stops_.size());
    const DivisionNode& node = tree_.node(n);
    if (node.kind != DivisionKind::kLinear) continue;
    int64_t before = 0;
    for (int c = node.first_child; c < node.first_child + node.child_count; ++c) {
      const int v = tree_.node(c).start;
      stops_.push_back({graph_.bytes(v).value(), before, graph_.must_keep(v)});
      before += stops_.back().bytes + costs_.whole[Index(c)];
    }
    stops_.push_back({graph_.bytes(node.end).value(), before, graph_.must_keep(node.end)});
  }
}

LimitedSet DivisionSearch::Under(int64_t limit, std::vector<int>* checkpoints) {
  set_ = {};
  set_.found = true;
  checkpoints_ = checkpoints;
  if (checkpoints != nullptr) checkpoints->clear();
  steps_ = 1;
  Keep(graph_.source());
  if (graph_.target() != graph_.source()) Keep(graph_.target());
  open_.clear();
  if (Opens(DivisionTree::kRoot, limit)) {
    open_.push_back(DivisionTree::kRoot);
  } else {
    set_.largest = costs_.largest[Index(DivisionTree::kRoot)];
  }
  while (!open_.empty() && set_.found) {
    const int n = open_.back();
    open_.pop_back();
    const DivisionNode& node = tree_.node(n);
    steps_ += node.child_count;
    if (node.kind == DivisionKind::kLinear) {
      OpenLinear(n, limit);
      continue;
    }
    for (const int v : tree_.connecting(n)) Keep(v);
    for (int c = node.first_child; c < node.first_child + node.child_count; ++c) {
      if (Opens(c, limit)) {
        open_.push_back(c);
      } else {
        set_.largest = std::max(set_.largest, costs_.largest[Index(c)]);
      }
    }
  }
  if (checkpoints != nullptr) std::sort(checkpoints->begin(), checkpoints->end());
  return set_;
}

void DivisionSearch::Keep(int v) {
  set_.kept.bytes += graph_.bytes(v).value();
  ++set_.kept.count;
  if (checkpoints_ != nullptr) checkpoints_->push_back(v);
}

void DivisionSearch::OpenLinear(int n, int64_t limit) {
  const DivisionNode& node = tree_.node(n);
  const size_t last = Index(node.child_count);
  size_t from = 0;
  for (size_t k = 0; k < last && set_.found; ++k) {
    const int child = node.first_child + static_cast<int>(k);
    if (!Opens(child, limit)) continue;
    open_.push_back(child);
    // The ends of the child are stops k and k + 1; the first may be the end of the one before.
    SolveRun(node, from, k, limit);
    if (k > from) Keep(tree_.node(child).start);
    if (k + 1 < last) Keep(tree_.node(child).end);
    from = k + 1;
  }
  if (set_.found) SolveRun(node, from, last, limit);
}

void DivisionSearch::SolveRun(const DivisionNode& node, size_t from, size_t to, int64_t limit) {
  if (from >= to) return;
  const size_t first = first_stop_[Index(tree_.node(node.first_child).parent)] + from;
  const absl::Span<const LinearStop> stops(stops_.data() + first, to - from + 1);
  if (!linear_.Solve(stops, limit)) {
    set_.found = false;
    return;
  }
  for (size_t stop = stops.size() - 1; stop != 0; stop = linear_.previous(stop)) {
    const size_t previous = linear_.previous(stop);
    const int child = node.first_child + static_cast<int>(from + previous);
    set_.largest =
        std::max(set_.largest, stop == previous + 1 ? costs_.largest[Index(child)]
                                                    : stops[previous].Until(stops[stop]));
    if (previous != 0) Keep(tree_.node(child).start);
  }
}

}  // namespace stowage
