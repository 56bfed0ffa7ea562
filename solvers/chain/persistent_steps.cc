#include "solvers/chain/persistent_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stowage {
namespace {

using Step = PersistentSteps::Step;
using Row = PersistentSteps::Row;

// Beyond all memories.
constexpr int64_t kEndOfRow = std::numeric_limits<int64_t>::max();

// The step that holds at `memory`, the last that begins at or below it; the row's end if none does.
Row::const_iterator StepAt(const Row& row, int64_t memory) {
  const auto over = std::upper_bound(row.begin(), row.end(), memory,
                                     [](int64_t m, const Step& step) { return m < step.memory; });
  return over == row.begin() ? row.end() : over - 1;
}

// The share of all work that is allowed up to intervals of `length`. Rows get longer with their
// intervals: with a tenth of the lengths some thousandths of the work are done, with half a third.
double AllowedShare(int length, int last) {
  constexpr double kCertain = 1e-3;
  const double x = static_cast<double>(length + 1) / last;
  return std::min(1.0, kCertain + 2.5 * x * x);
}

// Of the step that holds at `memory`; the row's size if none does.
size_t IndexAt(const Row& row, int64_t memory) {
  return static_cast<size_t>(StepAt(row, memory) - row.begin());
}

int64_t OverheadAt(const Row& row, int64_t memory) {
  const auto step = StepAt(row, memory);
  return step == row.end() ? kInfinity : step->overhead;
}

// One choice of the recurrence: `right` runs with the checkpoint kept beside it, `left` afterwards.
struct Split {
  const Row& right;
  const Row& left;
  int64_t kept;  // size of the checkpoint
  int64_t run;   // time of the forwards up to it
  int32_t distance;

  // Where the i-th step of `right` begins, in the memory of the whole interval.
  int64_t RightAt(size_t i) const { return i < right.size() ? right[i].memory + kept : kEndOfRow; }
  int64_t LeftAt(size_t i) const { return i < left.size() ? left[i].memory : kEndOfRow; }
};

// Steps of a split and of the row it is folded into that hold within a range of memories.
struct Range {
  int64_t from, end;  // memories
  size_t i, i_end;    // right: the step at `from` and at `end` - 1
  size_t j, j_end;    // left
  size_t k;           // the row: the step at `from`; row size if it has none there
};

// The minimum of rows as choices come in.
class LowerEnvelope {
 public:
  explicit LowerEnvelope(Row row) : row_(std::move(row)) {}

  Row Take() { return std::move(row_); }
  const Row& row() const { return row_; }
  // Leaves at most `count` steps, the first and the last among them: evenly spread along the curve
  // of memory and overhead, each in shares of its range.
  void Thin(size_t count) {
    if (count == 1) {
      row_.resize(1);
      return;
    }
    const Step first = row_.front(), last = row_.back();
    const auto way = [&first, &last](const Step& step) {
      return static_cast<double>(step.memory - first.memory) /
                 static_cast<double>(last.memory - first.memory) +
             static_cast<double>(first.overhead - step.overhead) /
                 static_cast<double>(first.overhead - last.overhead);
    };
    const double stride = 2.0 / static_cast<double>(count - 1);
    Row thin = {first};
    double next = stride;
    for (size_t i = 1; i + 1 < row_.size(); ++i) {
      const double here = way(row_[i]);
      if (here < next) continue;
      thin.push_back(row_[i]);
      next = stride * (std::floor(here / stride) + 1.0);
    }
    thin.push_back(last);
    row_ = std::move(thin);
  }
  int64_t work() const { return work_; }

  // Takes in a choice that is allowed for memories in [from, end).
  void Fold(const Split& split, int64_t from, int64_t end) {
    // Beyond the memory at which the row is down to `run`, the choice gains nothing.
    const auto down = std::partition_point(
        row_.begin(), row_.end(), [&split](const Step& s) { return s.overhead > split.run; });
    if (down != row_.end()) end = std::min(end, down->memory);
    ++work_;
    if (from >= end) return;
    better_.clear();
    Compare(split, {from, end, IndexAt(split.right, from - split.kept),
                    IndexAt(split.right, end - 1 - split.kept), IndexAt(split.left, from),
                    IndexAt(split.left, end - 1), IndexAt(row_, from)});
    if (!better_.empty()) Merge();
  }

 private:
  static constexpr size_t kFewSteps = 32;
  // A range costs some binary searches.
  static constexpr int64_t kWorkPerRange = 8;

  int64_t RowOverhead(size_t k) const { return k < row_.size() ? row_[k].overhead : kInfinity; }

  // Appends to better_ where the choice beats the row. A range whose end cannot beat the row at its
  // beginning is left out; others are halved until they have few steps.
  void Compare(const Split& split, const Range& range) {
    work_ += kWorkPerRange;
    if (split.run + split.right[range.i_end].overhead + split.left[range.j_end].overhead >=
        RowOverhead(range.k)) {
      return;
    }
    const size_t rights = range.i_end - range.i, lefts = range.j_end - range.j;
    if (rights + lefts <= kFewSteps) {
      CompareSteps(split, range);
      return;
    }
    Range low = range, high = range;
    if (rights >= lefts) {
      high.i = range.i + (rights + 1) / 2;
      high.from = split.RightAt(high.i);
      high.j = IndexAt(split.left, high.from);
      low.i_end = high.i - 1;
      low.j_end = IndexAt(split.left, high.from - 1);
    } else {
      high.j = range.j + (lefts + 1) / 2;
      high.from = split.LeftAt(high.j);
      high.i = IndexAt(split.right, high.from - split.kept);
      low.j_end = high.j - 1;
      low.i_end = IndexAt(split.right, high.from - 1 - split.kept);
    }
    low.end = high.from;
    high.k = IndexAt(row_, high.from);
    Compare(split, low);
    Compare(split, high);
  }

  void CompareSteps(const Split& split, Range range) {
    work_ += static_cast<int64_t>(range.i_end - range.i + range.j_end - range.j + 1);
    if (range.k == row_.size()) range.k = 0;
    for (int64_t memory = range.from; memory < range.end;) {
      while (range.k + 1 < row_.size() && row_[range.k + 1].memory <= memory) ++range.k;
      const int64_t overhead =
          split.run + split.right[range.i].overhead + split.left[range.j].overhead;
      if (row_.empty() || memory < row_.front().memory || overhead < row_[range.k].overhead) {
        better_.push_back({memory, overhead, split.distance});
      }
      const int64_t next_right = split.RightAt(range.i + 1), next_left = split.LeftAt(range.j + 1);
      memory = std::min(next_right, next_left);
      range.i += next_right == memory ? 1 : 0;
      range.j += next_left == memory ? 1 : 0;
    }
  }

  void Merge() {
    const auto first =
        std::lower_bound(row_.begin(), row_.end(), better_.front().memory,
                         [](const Step& step, int64_t memory) { return step.memory < memory; });
    tail_.assign(first, row_.end());
    row_.erase(first, row_.end());
    work_ += static_cast<int64_t>(tail_.size() + better_.size());
    int64_t overhead = kEndOfRow;
    size_t i = 0, j = 0;
    while (i < tail_.size() || j < better_.size()) {
      const bool own =
          j == better_.size() || (i < tail_.size() && tail_[i].memory < better_[j].memory);
      const Step& step = own ? tail_[i++] : better_[j++];
      if (step.overhead >= overhead) continue;
      overhead = step.overhead;
      row_.push_back(step);
    }
  }

  Row row_, better_, tail_;
  int64_t work_ = 0;
};

}  // namespace

PersistentSteps::PersistentSteps(const PersistentSpace& space, int64_t memory, size_t max_steps,
                                 Saving saving, const std::vector<StageRepeat>& repeats)
    : space_(&space),
      memory_(memory),
      max_steps_(max_steps),
      saving_(saving),
      row_of_(space.last()) {
  int32_t rows = 0;
  for (int s = space.last(); s >= 1; --s) {
    const StageRepeat& repeat = repeats[static_cast<size_t>(s)];
    for (int t = s; t <= space.last(); ++t) {
      row_of_(s, t) = t - s < repeat.length ? row_of_(repeat.stage, repeat.stage + t - s) : rows++;
    }
  }
  rows_.resize(static_cast<size_t>(rows));
}

Row PersistentSteps::KeepRow(int s, int t) const {
  const int64_t need = space_->KeepAllNeed(s, t);
  if (s == t) return need <= memory_ ? Row{{need, 0, 0}} : Row();
  Row row;
  if (saving_ == Saving::kJustInTime) return row;
  for (const Step& step : RowOf(s + 1, t)) {
    const int64_t memory = std::max(need, step.memory + space_->saved(s));
    if (memory > memory_) break;
    if (!row.empty() && row.back().memory == memory) row.pop_back();
    row.push_back({memory, step.overhead, 0});
  }
  return row;
}

absl::StatusOr<Row> PersistentSteps::ComputeRow(int s, int t, StopPoll* poll, int64_t* work) {
  LowerEnvelope envelope(KeepRow(s, t));
  const auto thin = [this, &envelope] {
    envelope.Thin(max_steps_);
    exact_ = false;
  };
  int64_t run_need = space_->FirstRunNeed(s);
  for (int split = s + 1; split <= t && space_->Recomputable(s, split - 1); ++split) {
    if (split > s + 1) run_need = space_->ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_->activation(split - 1);
    const int64_t need = std::max(space_->gradient(t) + run_need, kept);
    if (need > memory_) break;  // the need grows with the split
    const Row& right = RowOf(split, t);
    const Row& left = RowOf(s, split - 1);
    if (right.empty() || left.empty()) continue;
    const int64_t from = std::max({need, right.front().memory + kept, left.front().memory});
    const int64_t before = envelope.work();
    envelope.Fold({right, left, kept, space_->RecomputeTime(s, split - 1), split - s}, from,
                  memory_ + 1);
    absl::Status status = poll->Spend(8 * (envelope.work() - before));
    if (!status.ok()) return status;
    // Each split would add to what the next one walks over.
    if (envelope.row().size() > 2 * max_steps_ + 2) thin();
  }
  if (envelope.row().size() > max_steps_) thin();
  *work += envelope.work();
  Row row = envelope.Take();
  row.shrink_to_fit();
  return row;
}

absl::StatusOr<std::optional<PersistentSteps>> PersistentSteps::Compute(
    const PersistentSpace& space, int64_t memory, const Limits& limits, const SolveContext& context,
    Saving saving) {
  const std::optional<PersistentSteps> beyond_limits;
  const int last = space.last();
  int64_t bytes = IntervalTable<int32_t>::SizeBytes(last);
  if (bytes > limits.bytes) return beyond_limits;
  const std::vector<StageRepeat> repeats = FindStageRepeats(space);
  // Every split of every row is looked at; a third of the longest interval is their mean.
  const double least_work = static_cast<double>(DistinctIntervals(repeats)) * last / 3;
  if (least_work > static_cast<double>(limits.work)) return beyond_limits;
  PersistentSteps steps(space, memory, limits.steps, saving, repeats);
  std::vector<bool> done(steps.rows_.size());
  StopPoll poll(context.stop());
  int64_t work = 0;
  for (int length = 0; length < last; ++length) {
    const double allowed = static_cast<double>(limits.work) * AllowedShare(length, last);
    for (int s = 1; s + length <= last; ++s) {
      const size_t index = static_cast<size_t>(steps.row_of_(s, s + length));
      if (done[index]) continue;
      done[index] = true;
      absl::StatusOr<Row> row = steps.ComputeRow(s, s + length, &poll, &work);
      if (!row.ok()) return row.status();
      bytes += static_cast<int64_t>(row->size() * sizeof(Step));
      steps.rows_[index] = *std::move(row);
      if (static_cast<double>(work) > allowed || bytes > limits.bytes) return beyond_limits;
    }
    context.Report(static_cast<double>(length + 1) / last);
  }
  return std::optional<PersistentSteps>(std::move(steps));
}

int PersistentSteps::Choose(int s, int t, int64_t memory) const {
  const Step& step = *StepAt(RowOf(s, t), memory);
  if (saving_ == Saving::kAhead &&
      memory >= std::max(space_->KeepAllNeed(s, t), space_->saved(s)) &&
      OverheadAt(RowOf(s + 1, t), memory - space_->saved(s)) == step.overhead) {
    return 0;
  }
  return step.split == 0 ? 0 : s + step.split;
}

Schedule PersistentSteps::Backtrack(int s, int t, int64_t memory) const {
  return PersistentBacktrack::Run(*space_, s, t, memory,
                                  [this](int a, int b, int64_t m) { return Choose(a, b, m); });
}

}  // namespace stowage
