#include "solvers/chain/revolve_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

using Row = RevolveRows::Row;
using Step = RevolveRows::Step;

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
// A split costs some steps of each of its rows, a nanosecond or two each.
constexpr int64_t kStepsPerSplit = 3;
constexpr int64_t kAffordableWork = 1000000000;
constexpr int64_t kMaxWork = 20000000000;
constexpr int64_t kMinSteps = 16;
constexpr int64_t kMaxSteps = 4096;

// The last step at or below `memory`, or the row's end.
Row::const_iterator StepAt(const Row& row, int64_t memory) {
  const auto over = std::upper_bound(row.begin(), row.end(), memory,
                                     [](int64_t m, const Step& step) { return m < step.memory; });
  return over == row.begin() ? row.end() : over - 1;
}

int64_t ExcessAt(const Row& row, int64_t memory) {
  const auto step = StepAt(row, memory);
  return step == row.end() ? kNever : step->excess;
}

// The sum of two rows and `run`, with the memory of `right` raised by `kept`, for memories in
// [from, end). Both rows must hold at `from`.
void Add(const Row& right, int64_t kept, const Row& left, int64_t run, int64_t from, int64_t end,
         Row* sum) {
  auto r = StepAt(right, from - kept);
  auto l = StepAt(left, from);
  sum->clear();
  for (int64_t memory = from; memory < end;) {
    sum->push_back({memory, run + r->excess + l->excess});
    const int64_t next_right = r + 1 == right.end() ? kEnd : (r + 1)->memory + kept;
    const int64_t next_left = l + 1 == left.end() ? kEnd : (l + 1)->memory;
    memory = std::min(next_right, next_left);
    if (memory == kEnd) return;
    if (next_right == memory) ++r;
    if (next_left == memory) ++l;
  }
}

// The pointwise minimum.
void Min(const Row& a, const Row& b, Row* least) {
  least->clear();
  int64_t excess = kEnd;
  for (auto i = a.begin(), j = b.begin(); i != a.end() || j != b.end();) {
    const bool first = j == b.end() || (i != a.end() && i->memory < j->memory);
    const Step& step = first ? *i++ : *j++;
    if (step.excess >= excess) continue;
    excess = step.excess;
    if (!least->empty() && least->back().memory == step.memory) least->pop_back();
    least->push_back(step);
  }
}

// Leaves at most `count` steps, the first and the last among them: evenly spread along the curve of
// memory and excess, each in shares of its range.
void Thin(size_t count, Row* row) {
  if (count == 1) {
    row->resize(1);
    return;
  }
  const Step first = row->front(), last = row->back();
  const auto way = [&first, &last](const Step& step) {
    return static_cast<double>(step.memory - first.memory) /
               static_cast<double>(last.memory - first.memory) +
           static_cast<double>(first.excess - step.excess) /
               static_cast<double>(first.excess - last.excess);
  };
  const double stride = 2.0 / static_cast<double>(count - 1);
  Row thin = {first};
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

RevolveRows::RevolveRows(const PersistentSpace& space)
    : space_(&space), repeats_(FindStageRepeats(space)), rows_(space.last()) {}

void RevolveRows::Distinct(int* s, int* t) const {
  for (;;) {
    const StageRepeat& repeat = repeats_[static_cast<size_t>(*s)];
    if (*t - *s >= repeat.length) return;
    *t += repeat.stage - *s;
    *s = repeat.stage;
  }
}

const Row& RevolveRows::RowOf(int s, int t) const {
  Distinct(&s, &t);
  return rows_(s, t);
}

int64_t RevolveRows::Splits() const {
  int64_t splits = 0;
  for (int s = 1; s <= space_->last(); ++s) {
    const int64_t shared = repeats_[static_cast<size_t>(s)].length;
    const int64_t all = space_->last() - s + 1;  // lengths of intervals from s
    splits += (all * (all + 1) - shared * (shared + 1)) / 2;
  }
  return splits;
}

Row RevolveRows::ComputeRow(int s, int t, int64_t memory, int64_t* work) const {
  Row row, sum, least;
  if (s == t) {
    const int64_t need = space_->KeepAllNeed(s, s);
    if (need <= memory) row.push_back({need, 0});
    return row;
  }
  int64_t run_need = space_->FirstRunNeed(s);
  for (int split = s + 1; split <= t && space_->Recomputable(s, split - 1); ++split) {
    if (split > s + 1) run_need = space_->ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_->activation(split - 1);
    const int64_t need = std::max(space_->gradient(t) + run_need, kept);
    if (need > memory) break;  // the need grows with the split
    const Row& right = RowOf(split, t);
    const Row& left = RowOf(s, split - 1);
    ++*work;
    if (right.empty() || left.empty()) continue;
    const int64_t run = space_->ForwardTime(s, split - 1);
    const int64_t from = std::max({need, right.front().memory + kept, left.front().memory});
    // Where the row is down to `run` already, the split gains nothing.
    const auto down = std::partition_point(row.begin(), row.end(),
                                           [run](const Step& step) { return step.excess > run; });
    const int64_t end = down == row.end() ? memory + 1 : down->memory;
    if (from >= end) continue;
    Add(right, kept, left, run, from, end, &sum);
    Min(row, sum, &least);
    *work += static_cast<int64_t>(sum.size() + least.size());
    row.swap(least);
  }
  return row;
}

absl::StatusOr<RevolveRows> RevolveRows::Compute(const PersistentSpace& space, int64_t memory,
                                                 int64_t max_steps, const SolveOptions& options) {
  const int last = space.last();
  if (IntervalTable<Row>::SizeBytes(last) > options.table_limit.value()) {
    return absl::ResourceExhaustedError(absl::StrCat("rows for ", last,
                                                     " stages are over the limit of ",
                                                     options.table_limit.value(), " bytes"));
  }
  RevolveRows rows(space);
  const int64_t splits = rows.Splits();
  if (splits > kMaxWork / kStepsPerSplit / max_steps) {
    return absl::ResourceExhaustedError(
        absl::StrCat("rows of ", max_steps, " steps for ", last, " stages would take minutes"));
  }
  StopPoll poll(options.stop);
  int64_t bytes = IntervalTable<Row>::SizeBytes(last);
  for (int s = last; s >= 1; --s) {
    for (int t = s + rows.repeats_[static_cast<size_t>(s)].length; t <= last; ++t) {
      int64_t work = 1;
      Row row = rows.ComputeRow(s, t, memory, &work);
      if (row.size() > static_cast<size_t>(max_steps)) {
        Thin(static_cast<size_t>(max_steps), &row);
        rows.exact_ = false;
      }
      row.shrink_to_fit();
      bytes += static_cast<int64_t>(row.size() * sizeof(Step));
      rows.rows_(s, t) = std::move(row);
      if (bytes > options.table_limit.value()) {
        return absl::ResourceExhaustedError(absl::StrCat("rows of ", max_steps, " steps for ", last,
                                                         " stages are over the limit of ",
                                                         options.table_limit.value(), " bytes"));
      }
      absl::Status status = poll.Spend(8 * work);
      if (!status.ok()) return status;
    }
    if (options.progress) options.progress(1.0 - static_cast<double>(s - 1) / last);
  }
  return rows;
}

int64_t RevolveRows::AffordableSteps(const PersistentSpace& space, const SolveOptions& options) {
  const RevolveRows rows(space);
  const int64_t by_work = kAffordableWork / kStepsPerSplit / std::max<int64_t>(rows.Splits(), 1);
  const int64_t intervals = std::max<int64_t>(DistinctIntervals(rows.repeats_), 1);
  const int64_t by_memory =
      options.table_limit.value() / 2 / static_cast<int64_t>(sizeof(Step)) / intervals;
  return std::max<int64_t>(std::min({std::max(by_work, kMinSteps), by_memory, kMaxSteps}), 1);
}

int RevolveRows::Choose(int s, int t, int64_t memory) const {
  const Step step = *StepAt(RowOf(s, t), memory);
  int64_t run_need = space_->FirstRunNeed(s);
  for (int split = s + 1; split <= t; ++split) {
    if (split > s + 1) run_need = space_->ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_->activation(split - 1);
    if (step.memory < std::max(space_->gradient(t) + run_need, kept)) continue;
    if (space_->ForwardTime(s, split - 1) + ExcessAt(RowOf(split, t), step.memory - kept) +
            ExcessAt(RowOf(s, split - 1), step.memory) ==
        step.excess) {
      return split;
    }
  }
  return 0;
}

Schedule RevolveRows::Backtrack(int64_t memory) const {
  return PersistentBacktrack::Run(*space_, memory,
                                  [this](int s, int t, int64_t m) { return Choose(s, t, m); });
}

}  // namespace stowage
