#include "solvers/graph/division_search.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "solvers/graph/polled_sort.h"

namespace stowage {
namespace {

constexpr int kNone = -1;
// Of a Branch or Rigid node, opened between two polls.
constexpr int kChildrenPerVisit = 1 << 12;

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

DivisionSearch::DivisionSearch(const CheckpointGraph& graph, const DivisionTree& tree,
                               const DivisionCosts& costs, StopPoll* poll)
    : graph_(graph), tree_(tree), costs_(costs), poll_(poll) {
  closed_count_.assign(Index(tree.size()), 0);
  kept_.assign(Index(tree.size()), {});
  is_open_.assign(Index(tree.size()), false);
  closed_.resize(Index(tree.size()));
  std::iota(closed_.begin(), closed_.end(), 0);
  MakeStops();
}

void DivisionSearch::MakeStops() {
  first_stop_.reserve(Index(tree_.size()));
  stops_.reserve(Index(tree_.size()));
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

void DivisionSearch::Restart() {
  for (const int n : open_) is_open_[Index(n)] = false;
  open_.clear();
  waiting_.clear();
  segments_ = {};
  set_ = {};
  sum_ = &set_.kept;
  Keep(graph_.source());
  if (graph_.target() != graph_.source()) Keep(graph_.target());
}

absl::StatusOr<LimitedSet> DivisionSearch::Under(int64_t limit) {
  steps_ = 1;
  if (limit_ < 0 || limit > limit_) Restart();
  limit_ = limit;
  if (open_.empty()) {
    set_.largest = costs_.whole[DivisionTree::kRoot];
    if (Opens(DivisionTree::kRoot, limit)) Open(DivisionTree::kRoot);
  }
  absl::Status status = poll_->Spend(1 << 2);
  for (int n = TakeNode(limit); n != kNone && status.ok(); n = TakeNode(limit)) {
    const int64_t before = steps_;
    Visit(n, limit);
    status = poll_->Spend((steps_ - before) << 2);
  }
  if (!status.ok()) {
    limit_ = -1;
    return status;
  }
  if (!open_.empty()) set_.largest = segments_.empty() ? 0 : segments_.top().cost;
  return set_;
}

int DivisionSearch::TakeNode(int64_t limit) {
  int n = kNone;
  if (!segments_.empty() && segments_.top().cost > limit) {
    n = segments_.top().node;
    segments_.pop();
  } else if (!waiting_.empty()) {
    n = waiting_.back();
    waiting_.pop_back();
  }
  return n;
}

bool DivisionSearch::OpensLater(int a, int b) const {
  const bool a_must = costs_.must_open[Index(a)], b_must = costs_.must_open[Index(b)];
  if (a_must != b_must) return b_must;
  const int64_t a_cost = costs_.whole[Index(a)], b_cost = costs_.whole[Index(b)];
  return a_cost != b_cost ? a_cost < b_cost : a > b;
}

void DivisionSearch::Open(int n) {
  if (is_open_[Index(n)]) return;
  is_open_[Index(n)] = true;
  open_.push_back(n);
  waiting_.push_back(n);
  kept_[Index(n)] = {};
  const DivisionNode& node = tree_.node(n);
  if (node.kind == DivisionKind::kLinear) return;
  closed_count_[Index(n)] = node.child_count;
  const auto first = closed_.begin() + node.first_child;
  std::make_heap(first, first + node.child_count,
                 [this](int a, int b) { return OpensLater(a, b); });
  sum_ = &set_.kept;
  for (const int v : tree_.connecting(n)) Keep(v);
  steps_ += node.child_count;
}

void DivisionSearch::Visit(int n, int64_t limit) {
  ++steps_;
  const bool linear = tree_.node(n).kind == DivisionKind::kLinear;
  const int64_t largest = linear ? VisitLinear(n, limit) : VisitBranches(n, limit);
  if (largest > 0) segments_.push({largest, n});
}

int64_t DivisionSearch::VisitBranches(int n, int64_t limit) {
  const auto first = closed_.begin() + tree_.node(n).first_child;
  int& count = closed_count_[Index(n)];
  for (int opened = 0; count > 0; ++opened, --count) {
    const int child = *first;
    if (!Opens(child, limit)) return costs_.whole[Index(child)];
    if (opened == kChildrenPerVisit) {
      steps_ += opened;
      waiting_.push_back(n);
      return 0;
    }
    Open(child);
    std::pop_heap(first, first + count, [this](int a, int b) { return OpensLater(a, b); });
  }
  return 0;
}

int64_t DivisionSearch::VisitLinear(int n, int64_t limit) {
  KeptBytes& kept = kept_[Index(n)];
  set_.kept.bytes -= kept.bytes;
  set_.kept.count -= kept.count;
  kept = {};
  const DivisionNode& node = tree_.node(n);
  steps_ += node.child_count;
  const size_t last = Index(node.child_count);
  int64_t largest = 0;
  size_t from = 0;
  for (size_t k = 0; k < last; ++k) {
    const int child = node.first_child + static_cast<int>(k);
    if (!Opens(child, limit)) continue;
    Open(child);
    sum_ = &kept;
    // The ends of the child are stops k and k + 1; the first may be the end of the one before.
    largest = std::max(largest, SolveRun(node, from, k, limit));
    if (k > from) Keep(tree_.node(child).start);
    if (k + 1 < last) Keep(tree_.node(child).end);
    from = k + 1;
  }
  sum_ = &kept;
  largest = std::max(largest, SolveRun(node, from, last, limit));
  set_.kept.bytes += kept.bytes;
  set_.kept.count += kept.count;
  return largest;
}

int64_t DivisionSearch::SolveRun(const DivisionNode& node, size_t from, size_t to, int64_t limit) {
  if (from >= to) return 0;
  const size_t first = first_stop_[Index(tree_.node(node.first_child).parent)] + from;
  const absl::Span<const LinearStop> stops(stops_.data() + first, to - from + 1);
  linear_.Solve(stops, limit);
  int64_t largest = 0;
  for (size_t stop = stops.size() - 1; stop != 0; stop = linear_.previous(stop)) {
    const size_t previous = linear_.previous(stop);
    largest = std::max(largest, stops[previous].Until(stops[stop]));
    if (previous != 0) Keep(tree_.node(node.first_child + static_cast<int>(from + previous)).start);
  }
  return largest;
}

void DivisionSearch::Keep(int v) {
  sum_->bytes += graph_.bytes(v).value();
  ++sum_->count;
  if (checkpoints_ != nullptr) checkpoints_->push_back(v);
}

absl::StatusOr<std::vector<int>> DivisionSearch::Checkpoints(int64_t limit) {
  std::vector<int> checkpoints;
  checkpoints_ = &checkpoints;
  limit_ = -1;
  absl::Status status = Under(limit).status();
  checkpoints_ = nullptr;
  if (status.ok()) status = PolledSort(std::less<>(), &checkpoints, poll_);
  if (!status.ok()) return status;
  return checkpoints;
}

}  // namespace stowage
