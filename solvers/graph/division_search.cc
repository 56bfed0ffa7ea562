#include "solvers/graph/division_search.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "solvers/graph/polled_loop.h"
#include "solvers/graph/polled_sort.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Of the poll, whatever a node has inside.
constexpr int64_t kStepsPerVisit = 1 << 5;

}  // namespace

DivisionSearch::DivisionSearch(const CheckpointGraph& graph, const DivisionTree& tree,
                               const DivisionCosts& costs, StopPoll* poll)
    : graph_(graph), tree_(tree), costs_(costs), poll_(poll) {}

absl::Status DivisionSearch::Prepare() {
  const size_t nodes = Index(tree_.size());
  closed_count_.assign(nodes, 0);
  kept_.assign(nodes, {});
  is_open_.assign(nodes, false);
  absl::Status status = poll_->Spend(tree_.size());
  if (!status.ok()) return status;
  closed_.resize(nodes);
  std::iota(closed_.begin(), closed_.end(), 0);
  stops_.clear();
  first_stop_.clear();
  first_stop_.reserve(nodes);
  for (int n = 0; n < tree_.size() && status.ok(); ++n) {
    first_stop_.push_back(stops_.size());
    status =
        tree_.node(n).kind == DivisionKind::kLinear ? AddStops(tree_.node(n)) : poll_->Spend(1);
  }
  return status;
}

absl::Status DivisionSearch::AddStops(const DivisionNode& node) {
  int64_t before = 0;
  const auto add = [&](size_t k) {
    const size_t child = Index(node.first_child) + k;
    const int v = tree_.node(static_cast<int>(child)).start;
    stops_.push_back({graph_.bytes(v).value(), before, graph_.must_keep(v)});
    before += stops_.back().bytes + costs_.whole[child];
  };
  const absl::Status status = PolledLoop(Index(node.child_count), 1 << 2, add, poll_);
  stops_.push_back({graph_.bytes(node.end).value(), before, graph_.must_keep(node.end)});
  return status;
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
  absl::Status status = poll_->Spend(kStepsPerVisit);
  if (status.ok() && first_stop_.size() != Index(tree_.size())) status = Prepare();
  if (!status.ok()) return status;
  if (limit_ < 0 || limit > limit_) Restart();
  limit_ = limit;
  if (open_.empty()) {
    set_.largest = costs_.whole[DivisionTree::kRoot];
    if (status.ok() && Opens(DivisionTree::kRoot, limit)) status = Open(DivisionTree::kRoot);
  }
  while (status.ok()) {
    const int n = TakeNode(limit);
    if (n == kNoIndex) break;
    const int64_t before = steps_;
    status = Visit(n, limit);
    if (status.ok()) status = poll_->Spend(kStepsPerVisit + ((steps_ - before) << 2));
  }
  if (!status.ok()) {
    limit_ = -1;
    return status;
  }
  if (!open_.empty()) set_.largest = segments_.empty() ? 0 : segments_.top().cost;
  return set_;
}

int DivisionSearch::TakeNode(int64_t limit) {
  int n = kNoIndex;
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

absl::Status DivisionSearch::Open(int n) {
  if (is_open_[Index(n)]) return absl::OkStatus();
  is_open_[Index(n)] = true;
  open_.push_back(n);
  waiting_.push_back(n);
  kept_[Index(n)] = {};
  const DivisionNode& node = tree_.node(n);
  if (node.kind == DivisionKind::kLinear) return absl::OkStatus();
  closed_count_[Index(n)] = node.child_count;
  sum_ = &set_.kept;
  for (const int v : tree_.connecting(n)) Keep(v);
  steps_ += node.child_count;
  return PolledMakeHeap(
      closed_.begin() + node.first_child, Index(node.child_count),
      [this](int a, int b) { return OpensLater(a, b); }, poll_);
}

absl::Status DivisionSearch::Visit(int n, int64_t limit) {
  ++steps_;
  const bool linear = tree_.node(n).kind == DivisionKind::kLinear;
  const absl::StatusOr<int64_t> largest = linear ? VisitLinear(n, limit) : VisitBranches(n, limit);
  if (!largest.ok()) return largest.status();
  if (*largest > 0) segments_.push({*largest, n});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DivisionSearch::VisitBranches(int n, int64_t limit) {
  const auto first = closed_.begin() + tree_.node(n).first_child;
  int& count = closed_count_[Index(n)];
  for (; count > 0; --count) {
    const int child = *first;
    if (!Opens(child, limit)) return costs_.whole[Index(child)];
    absl::Status status = Open(child);
    if (status.ok()) status = poll_->Spend(kStepsPerVisit);
    if (!status.ok()) return status;
    std::pop_heap(first, first + count, [this](int a, int b) { return OpensLater(a, b); });
  }
  return 0;
}

absl::StatusOr<int64_t> DivisionSearch::VisitLinear(int n, int64_t limit) {
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
    absl::Status status = Open(child);
    if (!status.ok()) return status;
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
