#include "solvers/chain/internal/revolve_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/persistent_steps.h"

namespace stowage {
namespace {

// What a split takes of one core: something for itself, and for every step of its rows.
constexpr double kNanosPerSplit = 20;
constexpr double kNanosPerStep = 25;
// What the solver aims at, what it takes where that is not enough for kMinSteps, and what it does
// when a caller asks for so many steps.
constexpr double kAimNanos = 3e9;
constexpr double kMostNanos = 8e9;
constexpr double kMostAskedNanos = 4e10;
constexpr int64_t kMinSteps = 4;
constexpr int64_t kMaxSteps = 4096;
// What a row takes without its steps.
constexpr int64_t kRowBytes = 64;

absl::Status TooLong(int stages) {
  return absl::ResourceExhaustedError(
      absl::StrCat("rows for all intervals of ", stages, " stages would take minutes"));
}

}  // namespace

RevolveIntervals::RevolveIntervals(const PersistentSpace& space)
    : repeats_(FindStageRepeats(space)), begin_(static_cast<size_t>(space.last()) + 1) {
  for (int s = 1; s <= space.last(); ++s) {
    const int64_t shared = repeats_[static_cast<size_t>(s)].length;
    const int64_t all = space.last() - s + 1;  // lengths of intervals from s
    begin_[static_cast<size_t>(s)] = count_ - (s + shared);
    count_ += all - shared;
    splits_ += (all * (all - 1) - shared * (shared - 1)) / 2;
  }
}

absl::StatusOr<RevolveIntervals> RevolveIntervals::Find(const PersistentSpace& space,
                                                        const SolveOptions& options) {
  absl::Status status = options.stop == nullptr ? absl::OkStatus() : options.stop->Check();
  if (!status.ok()) return status;
  // At the least there is an interval of every length.
  const double length = space.last();
  if (space.last() > kMaxIntervalStages + 1 ||
      length * length / 2 * (kNanosPerSplit + kMinSteps * kNanosPerStep) > kMostNanos) {
    return TooLong(space.last());
  }
  RevolveIntervals intervals(space);
  if (options.stop != nullptr) status = options.stop->Check();
  if (!status.ok()) return status;
  if (intervals.Nanos(kMinSteps) > kMostNanos) return TooLong(space.last());
  if (intervals.count_ > options.table_limit.value() / kRowBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("rows for ", space.last(),
                                                     " stages are over the limit of ",
                                                     options.table_limit.value(), " bytes"));
  }
  return intervals;
}

size_t RevolveIntervals::operator()(int s, int t) const {
  MoveToDistinct(repeats_, &s, &t);
  return static_cast<size_t>(begin_[static_cast<size_t>(s)] + t);
}

double RevolveIntervals::Nanos(int64_t steps) const {
  return static_cast<double>(splits_) *
         (kNanosPerSplit + kNanosPerStep * static_cast<double>(steps));
}

int64_t RevolveIntervals::AffordableSteps(int64_t step_bytes, const SolveOptions& options) const {
  const double splits = static_cast<double>(std::max<int64_t>(splits_, 1));
  const double by_time = (kAimNanos / splits - kNanosPerSplit) / kNanosPerStep;
  const int64_t bytes = options.table_limit.value() - count_ * kRowBytes;
  const double by_memory = static_cast<double>(std::max<int64_t>(bytes, 0)) / 2 /
                           static_cast<double>(step_bytes * std::max<int64_t>(count_, 1));
  const double steps =
      std::min(std::clamp<double>(by_time, kMinSteps, kMaxSteps), std::max(by_memory, 1.0));
  return static_cast<int64_t>(steps);
}

absl::Status RevolveIntervals::CheckSteps(int64_t steps) const {
  if (steps <= kMinSteps || Nanos(steps) <= kMostAskedNanos) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("rows of ", steps, " steps for ", last(), " stages would take minutes"));
}

namespace {

using RevolveRow = RevolveRows::Row;
using RevolveStep = RevolveRows::Step;

// What remains when `stages` have run, for memories in [from, end): the sum of two rows and
// `run`, with the memory of `right` raised by `kept`. Both rows must hold at `from`.
void Add(const RevolveRow& right, int64_t kept, const RevolveRow& left, int64_t run, int stages,
         int64_t from, int64_t end, RevolveRow* sum) {
  auto r = StepAt(right, from - kept);
  auto l = StepAt(left, from);
  sum->clear();
  for (int64_t memory = from; memory < end;) {
    sum->push_back({memory, run + r->excess + l->excess, stages});
    const int64_t next_right = r + 1 == right.end() ? kEndOfRow : (r + 1)->memory + kept;
    const int64_t next_left = l + 1 == left.end() ? kEndOfRow : (l + 1)->memory;
    memory = std::min(next_right, next_left);
    if (memory == kEndOfRow) return;
    if (next_right == memory) ++r;
    if (next_left == memory) ++l;
  }
}

// The pointwise minimum; of equals, the step of `a`.
void Min(const RevolveRow& a, const RevolveRow& b, RevolveRow* least) {
  least->clear();
  int64_t excess = kEndOfRow;
  for (auto i = a.begin(), j = b.begin(); i != a.end() || j != b.end();) {
    const bool first = j == b.end() || (i != a.end() && i->memory <= j->memory);
    const RevolveStep& step = first ? *i++ : *j++;
    if (step.excess >= excess) continue;
    excess = step.excess;
    if (!least->empty() && least->back().memory == step.memory) least->pop_back();
    least->push_back(step);
  }
}

// Leaves at most `count` steps, the first and the last among them: evenly spread along the curve of
// memory and excess, each in shares of its range.
void Thin(size_t count, RevolveRow* row) {
  if (count == 1) {
    row->resize(1);
    return;
  }
  const RevolveStep first = row->front(), last = row->back();
  const auto way = [&first, &last](const RevolveStep& step) {
    return static_cast<double>(step.memory - first.memory) /
               static_cast<double>(last.memory - first.memory) +
           static_cast<double>(first.excess - step.excess) /
               static_cast<double>(first.excess - last.excess);
  };
  const double stride = 2.0 / static_cast<double>(count - 1);
  RevolveRow thin = {first};
  double next = stride;
  for (size_t i = 1; i + 1 < row->size(); ++i) {
    const double here = way((*row)[i]);
    if (here < next) continue;
    thin.push_back((*row)[i]);
    next = stride * (std::floor(here / stride) + 1.0);
  }
  thin.push_back(last);
  *row = std::move(thin);
}

}  // namespace

void RevolveRows::ThinTo(size_t count, RevolveRow* row) {
  Thin(count, row);
  exact_ = false;
}

absl::Status RevolveRows::ComputeRow(int s, int t, int64_t memory, size_t max_steps, StopPoll* poll,
                                     RevolveRow* row) {
  row->clear();
  if (s == t) {
    const int64_t need = space_->KeepAllNeed(s, s);
    if (need <= memory) row->push_back({need, 0, 0});
    return absl::OkStatus();
  }
  RevolveRow sum, least;
  int64_t run_need = space_->FirstRunNeed(s);
  for (int split = s + 1; split <= t && space_->Recomputable(s, split - 1); ++split) {
    if (split > s + 1) run_need = space_->ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_->activation(split - 1);
    const int64_t need = std::max(space_->gradient(t) + run_need, kept);
    if (need > memory) break;  // the need grows with the split
    absl::Status status = poll->Spend(16);
    if (!status.ok()) return status;
    const RevolveRow& right = RowOf(split, t);
    const RevolveRow& left = RowOf(s, split - 1);
    if (right.empty() || left.empty()) continue;
    const int64_t run = space_->ForwardTime(s, split - 1);
    const int64_t from = std::max({need, right.front().memory + kept, left.front().memory});
    // Where the row is down to `run` already, the split gains nothing.
    const auto down = std::partition_point(
        row->begin(), row->end(), [run](const RevolveStep& step) { return step.excess > run; });
    const int64_t end = down == row->end() ? memory + 1 : down->memory;
    if (from >= end) continue;
    Add(right, kept, left, run, split - s, from, end, &sum);
    Min(*row, sum, &least);
    status = poll->Spend(8 * static_cast<int64_t>(sum.size() + least.size()));
    if (!status.ok()) return status;
    row->swap(least);
    // Each split would add to what the next one walks over.
    if (row->size() > 2 * max_steps + 2) ThinTo(max_steps, row);
  }
  if (row->size() > max_steps) ThinTo(max_steps, row);
  return absl::OkStatus();
}

absl::StatusOr<RevolveRows> RevolveRows::Compute(const PersistentSpace& space,
                                                 const RevolveIntervals& intervals, int64_t memory,
                                                 int64_t max_steps, const SolveOptions& options) {
  absl::Status status = intervals.CheckSteps(max_steps);
  if (!status.ok()) return status;
  const int last = space.last();
  RevolveRows rows(space, intervals);
  StopPoll poll(options.stop);
  int64_t bytes = intervals.count() * static_cast<int64_t>(sizeof(RevolveRow));
  RevolveRow row;
  for (int s = last; s >= 1; --s) {
    for (int t = intervals.FirstEnd(s); t <= last; ++t) {
      status = rows.ComputeRow(s, t, memory, static_cast<size_t>(max_steps), &poll, &row);
      if (!status.ok()) return status;
      bytes += static_cast<int64_t>(row.size() * sizeof(RevolveStep));
      if (bytes > options.table_limit.value()) {
        return absl::ResourceExhaustedError(absl::StrCat("rows of ", max_steps, " steps for ", last,
                                                         " stages are over the limit of ",
                                                         options.table_limit.value(), " bytes"));
      }
      rows.rows_[intervals(s, t)] = RevolveRow(row.begin(), row.end());
    }
    if (options.progress) options.progress(1.0 - static_cast<double>(s - 1) / last);
  }
  return rows;
}

Schedule RevolveRows::Backtrack(int64_t memory) const {
  return PersistentBacktrack::Run(
      *space_, memory, [this](int s, int t, int64_t m) { return s + StepAt(RowOf(s, t), m)->run; });
}

}  // namespace stowage
