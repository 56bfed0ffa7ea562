#include "solvers/graph/internal/division_search.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "solvers/graph/internal/polled_loops.h"
#include "solvers/model/index.h"

namespace stowage {

void LinearCheckpoints::Solve(absl::Span<const LinearStop> stops, int64_t limit) {
  via_.resize(stops.size());
  window_.resize(stops.size());
  kept_ = {};
  KeptBytes entering;  // with the stop before kept; nothing for the first, which is kept anyway
  size_t head = 0, tail = 0;
  for (size_t stop = 1; stop < stops.size(); ++stop) {
    const LinearStop& before = stops[stop - 1];
    if (before.must_keep) head = tail;
    while (tail > head && entering < window_[tail - 1].kept) --tail;
    window_[tail++] = {entering, before.before + before.bytes, stop - 1};
    // What is out of reach now is out of reach of all later stops.
    while (stops[stop].before - window_[head].end > limit) ++head;
    via_[stop] = window_[head].stop;
    kept_ = window_[head].kept;
    entering = {kept_.bytes + stops[stop].bytes, kept_.count + 1};
  }
}

namespace {

// Bytes that the op at a node's end reads from inside the node.
absl::StatusOr<std::vector<int64_t>> ReadFromInside(const CheckpointGraph& graph,
                                                    const DivisionTree& tree, StopPoll* poll) {
  std::vector<int64_t> read(Index(tree.size()), 0);
  std::vector<bool> direct(Index(tree.size()), false);  // the end reads the start
  for (int n = tree.size() - 1; n > 0; --n) {
    absl::Status status = poll->Spend(1 << 3);
    if (!status.ok()) return status;
    const DivisionNode& node = tree.node(n);
    const DivisionNode& parent = tree.node(node.parent);
    if (node.kind == DivisionKind::kEdge) direct[Index(n)] = true;
    if (node.end != parent.end) continue;
    read[Index(node.parent)] += read[Index(n)];
    if (!direct[Index(n)]) continue;
    if (node.start == parent.start) {
      direct[Index(node.parent)] = true;
    } else {
      read[Index(node.parent)] += graph.bytes(node.start).value();
    }
  }
  return read;
}

// Adds what the ends' ops hold of other segments once the parent of a node is divided.
absl::Status ChargeNeededInputs(const CheckpointGraph& graph, const DivisionTree& tree,
                                std::vector<int64_t>* whole, StopPoll* poll) {
  const absl::StatusOr<std::vector<int64_t>> inside = ReadFromInside(graph, tree, poll);
  if (!inside.ok()) return inside.status();
  const std::vector<int64_t>& read = *inside;
  const int64_t most = graph.total().value();
  std::vector<int64_t> beside(Index(tree.size()), 0);
  std::vector<int64_t> read_at(Index(graph.size()), 0);  // by the end of the children at hand
  for (int n = 0; n < tree.size(); ++n) {
    const DivisionNode& node = tree.node(n);
    const auto for_each_child = [&node, poll](const auto& visit) {
      return PolledLoop(
          Index(node.child_count), 1 << 3,
          [&](size_t k) { visit(node.first_child + static_cast<int>(k)); }, poll);
    };
    absl::Status status =
        for_each_child([&](int c) { read_at[Index(tree.node(c).end)] += read[Index(c)]; });
    const auto charge = [&](int c) {
      const int end = tree.node(c).end;
      if (!graph.needs_inputs(end)) return;
      if (end == node.end) beside[Index(c)] = beside[Index(n)];
      beside[Index(c)] += read_at[Index(end)] - read[Index(c)];
    };
    if (status.ok()) status = for_each_child(charge);
    const auto forget = [&](int c) { read_at[Index(tree.node(c).end)] = 0; };
    if (status.ok()) status = for_each_child(forget);
    (*whole)[Index(n)] = std::min(most, (*whole)[Index(n)] + beside[Index(n)]);
    if (status.ok()) status = poll->Spend(1 << 3);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DivisionCosts> CostsOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                      NeededInputs needed, StopPoll* poll) {
  DivisionCosts costs;
  const auto nodes = Index(tree.size());
  absl::Status status = PolledLoop(
      nodes, 1 << 3,
      [&](size_t n) { costs.whole.push_back(tree.node(static_cast<int>(n)).bytes.value()); }, poll);
  if (status.ok() && needed == NeededInputs::kAllCharged) {
    status = ChargeNeededInputs(graph, tree, &costs.whole, poll);
  }
  costs.must_open.assign(nodes, false);
  const auto open = [&](size_t k) {
    const size_t n = nodes - 1 - k;
    for (const int v : tree.connecting(static_cast<int>(n))) {
      if (graph.must_keep(v)) costs.must_open[n] = true;
    }
    const int parent = tree.node(static_cast<int>(n)).parent;
    if (parent >= 0 && costs.must_open[n]) costs.must_open[Index(parent)] = true;
  };
  if (status.ok()) status = PolledLoop(nodes, 1 << 3, open, poll);
  if (!status.ok()) return status;
  return costs;
}

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
  stops_.reserve(nodes + nodes / 2);  // a child has one, a Linear node, of two or more, one more
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

namespace {

// Largest segments in (above, limit]: every set with one of them costs at least `cost`.
struct Interval {
  int64_t cost;
  int64_t above;
  int64_t limit;

  friend bool operator>(const Interval& a, const Interval& b) {
    return std::tie(a.cost, a.above) > std::tie(b.cost, b.above);
  }
};

class LimitSweep {
 public:
  LimitSweep(int64_t most, int64_t work, DivisionSearch* search, const SolveContext& context)
      : most_(most), work_(work), search_(search), context_(context) {}

  absl::StatusOr<SweepResult> Run() {
    absl::Status status = Sample();
    if (status.ok()) status = Sweep();
    if (status.ok() && next_ > too_small_) status = Halve();
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<int>> checkpoints = search_->Checkpoints(best_limit_);
    if (!checkpoints.ok()) return checkpoints.status();
    SweepResult result;
    result.checkpoints = *std::move(checkpoints);
    result.objective = best_.objective();
    result.lower_bound = std::min(bound_, result.objective);
    result.limits_tried = tried_;
    return result;
  }

 private:
  absl::Status Try(int64_t limit) {
    const absl::StatusOr<LimitedSet> set = search_->Under(limit);
    if (!set.ok()) return set.status();
    current_ = *set;
    ++tried_;
    spent_ += search_->steps();
    if (best_limit_ < 0 || Improves()) {
      best_ = current_;
      best_limit_ = limit;
    }
    return absl::OkStatus();
  }
  bool Improves() const {
    const int64_t objective = current_.objective();
    return objective != best_.objective() ? objective < best_.objective()
                                          : current_.kept.count < best_.kept.count;
  }
  // The largest limit below `limit` that is worth trying, as far as `found` under it tells; below 0
  // if none is.
  int64_t NextBelow(int64_t limit, const LimitedSet& found) const {
    return std::min({limit, found.largest, best_.objective() - found.kept.bytes}) - 1;
  }

  // Finds a good set early, and a limit that is too small, by steps of a quarter.
  absl::Status Sample() {
    absl::Status status = Try(most_);
    const LimitedSet whole = current_;
    for (int64_t limit = most_ / 4 * 3; status.ok() && limit > 0; limit = limit / 4 * 3) {
      status = Try(limit);
      if (current_.kept.bytes >= best_.objective()) {
        too_small_ = limit;
        break;
      }
    }
    next_ = NextBelow(most_, whole);
    return status;
  }

  // With three quarters of the work.
  absl::Status Sweep() {
    while (next_ > too_small_ && spent_ < work_ / 4 * 3) {
      const absl::Status status = Try(next_);
      if (!status.ok()) return status;
      next_ = NextBelow(next_, current_);
      ReportProgress(std::max<int64_t>(next_, 0));
    }
    return absl::OkStatus();
  }

  // Looks where the bound is lowest, with the rest of the work.
  absl::Status Halve() {
    std::priority_queue<Interval, std::vector<Interval>, std::greater<>> open;
    const auto add = [&](int64_t above, int64_t limit) {
      if (limit <= above) return absl::OkStatus();
      const absl::Status status = Try(limit);
      const int64_t below = NextBelow(limit, current_);
      if (below > above) open.push({current_.kept.bytes + above + 1, above, below});
      return status;
    };
    absl::Status status = add(too_small_, next_);
    while (status.ok() && !open.empty() && open.top().cost < best_.objective() && spent_ < work_) {
      const auto [cost, above, limit] = open.top();
      open.pop();
      const int64_t middle = above + (limit - above) / 2;
      status = add(middle, limit);
      if (status.ok()) status = add(above, middle);
    }
    if (!open.empty()) bound_ = open.top().cost;
    return status;
  }

  // At most some hundred times: there may be as many limits as vertices.
  void ReportProgress(int64_t limit) {
    const int64_t step = most_ / 256 + 1;
    if (limit > reported_ - step) return;
    reported_ = limit;
    context_.Report(1.0 - static_cast<double>(limit) / static_cast<double>(most_));
  }

  const int64_t most_;
  const int64_t work_;
  DivisionSearch* const search_;
  const SolveContext context_;
  LimitedSet current_;
  LimitedSet best_;
  int64_t best_limit_ = -1;
  int64_t too_small_ = -1;
  int64_t next_ = -1;  // larger ones are done
  int64_t bound_ = std::numeric_limits<int64_t>::max();
  int64_t spent_ = 0;
  int64_t tried_ = 0;
  int64_t reported_ = most_;
};

}  // namespace

absl::StatusOr<SweepResult> SweepLimits(int64_t most, int64_t work, DivisionSearch* search,
                                        const SolveContext& context) {
  return LimitSweep(most, work, search, context).Run();
}

}  // namespace stowage
