#include "solvers/chain/internal/sparse_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/min_plus_dispatch.h"
#include "solvers/chain/internal/non_persistent_table.h"

namespace stowage {
namespace {

// Of a chain whose distinct intervals are no more than this times its stages all are there.
constexpr int64_t kDistinctPerStage = 64;

}  // namespace

SparseIntervals::SparseIntervals(const PersistentSpace& space, int dense)
    : last_(space.last()), repeats_(FindStageRepeats(space)), rows_(space.last()) {
  shares_ = last_ > dense && DistinctIntervals(repeats_) <= kDistinctPerStage * last_;
  ends_begin_.assign(2, 0);
  if (shares_) {
    FillEndsByDistance(space, dense);
  } else {
    FillEndsByLevels(space, dense);
  }
  for (int s = last_; s >= 1; --s) {
    for (int t = s; t <= last_; ++t) rows_(s, t) = shares_ || t == last_ ? 0 : kNone;
    if (!shares_) {
      for (const int32_t e : Ends(s)) rows_(s, e) = 0;
    }
    const StageRepeat repeat = repeats_[static_cast<size_t>(s)];
    const double ends = static_cast<double>(Ends(s).size());
    for (int t = s; t <= last_; ++t) {
      if (rows_(s, t) == kNone) continue;
      if (shares_ && t - s < repeat.length) {
        rows_(s, t) = rows_(repeat.stage, repeat.stage + t - s);
      } else {
        rows_(s, t) = static_cast<int32_t>(size_++);
        alternatives_ += shares_ ? 4 * ends : 2 * ends;
      }
    }
  }
}

void SparseIntervals::FillEndsByLevels(const PersistentSpace& space, int dense) {
  // The longest interval that ends at a stage.
  std::vector<int64_t> longest(static_cast<size_t>(last_) + 1, dense);
  std::vector<int> points;
  for (int t = 1; t < last_; ++t) points.push_back(t);
  for (int64_t length = dense; length < last_ && points.size() > 1;) {
    length += length / 2;
    std::vector<int> fewer;
    for (size_t i = 0; i < points.size(); i += 2) {
      const bool second =
          i + 1 < points.size() && space.activation(points[i + 1]) <= space.activation(points[i]);
      fewer.push_back(points[i + (second ? 1 : 0)]);
    }
    points = std::move(fewer);
    for (const int t : points) longest[static_cast<size_t>(t)] = length;
  }
  for (int s = 1; s <= last_; ++s) {
    for (int t = s; t <= last_; ++t) {
      if (t - s < longest[static_cast<size_t>(t)]) ends_.push_back(t);
    }
    ends_begin_.push_back(ends_.size());
  }
}

// Of every window of stages behind s, the wider the farther, the one with the smallest output.
void SparseIntervals::FillEndsByDistance(const PersistentSpace& space, int dense) {
  for (int s = 1; s <= last_; ++s) {
    int64_t width = 1;
    for (int64_t begin = s; begin < last_; begin += width) {
      if (begin - s >= dense * width) width *= 2;
      const int64_t end = std::min<int64_t>(begin + width, last_);
      int64_t best = begin;
      for (int64_t t = begin + 1; t < end; ++t) {
        if (space.activation(static_cast<int>(t)) <= space.activation(static_cast<int>(best)))
          best = t;
      }
      ends_.push_back(static_cast<int32_t>(best));
    }
    ends_begin_.push_back(ends_.size());
  }
}

SparseTable::SparseTable(const PersistentSpace& space, const SparseIntervals& intervals,
                         int64_t slots)
    : space_(space), intervals_(intervals), slots_(slots) {
  // Overheads up to eight times all forwards; more are as if nothing fitted.
  constexpr int64_t kLargest = int64_t{kInfinityAs<Value>} / 8;
  const int64_t total = space.ForwardTime(1, space.last());
  time_unit_ = total / kLargest + 1;
  forward_.push_back(0);
  until_.push_back(0);
  for (int l = 1; l <= space.last(); ++l) {
    forward_.push_back(static_cast<Value>(space.ForwardTime(1, l) / time_unit_));
    until_.push_back(
        std::max(forward_[static_cast<size_t>(l) - 1],
                 static_cast<Value>((space.ForwardTime(1, l) - space.StopGain(l)) / time_unit_)));
  }
  needs_.reserve(static_cast<size_t>(intervals.ends()));
  for (int s = 1; s <= space.last(); ++s) {
    int64_t need = 0;  // of the forwards of s..at
    int at = s - 1;
    const auto run_to = [&](int stage) {
      for (; at < stage; ++at)
        need = at < s ? space.FirstRunNeed(s) : space.ExtendRunNeed(need, at + 1);
      return need;
    };
    for (const int32_t e : intervals.Ends(s)) {
      Needs needs;
      if (e > s && space.Recomputable(s, e - 1)) {
        needs.save = std::max(run_to(e - 1), space.activation(e - 1) + space.SavingNeed(e));
      }
      if (space.Recomputable(s, e)) needs.split = run_to(e);
      needs_.push_back(needs);
    }
  }
}

// The way that keeps most first. Calls visit(way) until it returns false.
template <class Visit>
void SparseTable::ForEachWay(int s, int t, bool saved, const Visit& visit) const {
  if (s == t) {
    const int64_t need = saved ? space_.BackwardNeed(t) : space_.KeepAllNeed(t, t);
    visit(Way{Way::kKeep, s, need, 0, kNothing, kNothing, 0});
    return;
  }
  const int64_t top = space_.gradient(t) + (saved ? space_.saved(t) : 0);
  if (!visit(Way{Way::kKeep, s, std::max(top + space_.SavingNeed(s), space_.BackwardNeed(s)),
                 space_.saved(s), RowOf(s + 1, t, saved), kNothing, 0})) {
    return;
  }
  const absl::Span<const int32_t> ends = intervals_.Ends(s);
  const Needs* const needs = needs_.data() + intervals_.FirstEnd(s);
  const Value before = forward_[static_cast<size_t>(s) - 1];
  for (size_t i = 0; i < ends.size() && ends[i] <= t; ++i) {
    const int e = ends[i];
    // Stages s..e run again and a^e is kept until its backward.
    if (e < t && needs[i].split < kInfinity) {
      if (!visit(Way{Way::kSplit, e, top + needs[i].split, space_.activation(e),
                     RowOf(e + 1, t, saved), RowOf(s, e, false),
                     until_[static_cast<size_t>(e)] - before})) {
        return;
      }
    }
    // Stages s..e-1 run again, and all of e is saved but its input.
    if (needs[i].save >= kInfinity || (e == t && saved)) continue;
    Value time = forward_[static_cast<size_t>(e) - 1] - before;
    // The stage that the interval ends with is counted as one that stops early.
    if (e == t) time += forward_[static_cast<size_t>(e)] - until_[static_cast<size_t>(e)];
    if (!visit(Way{Way::kSave, e, top + needs[i].save, space_.saved(e),
                   e < t ? RowOf(e + 1, t, saved) : kNothing, RowOf(s, e, true), time})) {
      return;
    }
  }
}

absl::Status SparseTable::FindExtents(StopPoll* poll) {
  rows_.assign(static_cast<size_t>(2 * intervals_.size()), Row{slots_ + 1, slots_ + 1, 0});
  absl::Status status;
  intervals_.ForEach([&](int s, int t) {
    for (const bool saved : {true, false}) {
      if (saved && !intervals_.MayHoldSaved(s, t)) continue;
      int64_t least = slots_ + 1, all_kept = 0, ways = 0;
      ForEachWay(s, t, saved, [&](const Way& way) {
        int64_t begin = way.need, end = way.need;
        if (way.upper != kNothing) {
          begin = std::max(begin, way.held + RowAt(way.upper).begin);
          end = std::max(end, way.held + RowAt(way.upper).end);
        }
        if (way.lower != kNothing) begin = std::max(begin, RowAt(way.lower).begin);
        if (ways++ == 0) all_kept = end;
        least = std::min(least, begin);
        return true;
      });
      Row& row = rows_[static_cast<size_t>(RowOf(s, t, saved))];
      row.begin = least;
      row.end = std::clamp(all_kept, least, slots_ + 1);
      row.offset = count_;
      count_ += row.end - row.begin;
      status = poll->Spend(8 * ways);
      if (!status.ok()) return false;
    }
    return true;
  });
  return status;
}

absl::Status SparseTable::Fill(const SolveContext& context, StopPoll* poll) {
  absl::Status status;
  intervals_.ForEach([&](int s, int t) {
    for (const bool saved : {true, false}) {
      if (saved && !intervals_.MayHoldSaved(s, t)) continue;
      const Row& row = RowAt(RowOf(s, t, saved));
      if (row.begin == row.end) continue;
      std::fill(ValueAt(row, row.begin), ValueAt(row, row.end), kInfinityAs<Value>);
      int64_t steps = 4 * (row.end - row.begin);
      ForEachWay(s, t, saved, [&](const Way& way) {
        steps += 16 + Relax(row, way) / 4;
        return true;
      });
      status = poll->Spend(steps);
      if (!status.ok()) return false;
    }
    if (t == space_.last()) {
      context.Report(static_cast<double>(space_.last() - s + 1) / space_.last());
    }
    return true;
  });
  return status;
}

// Lets one way improve a row; how many values it looked at.
int64_t SparseTable::Relax(const Row& row, const Way& way) {
  static constexpr Row kEmpty = {0, 0, 0};
  const Row& upper = way.upper == kNothing ? kEmpty : RowAt(way.upper);
  const Row& lower = way.lower == kNothing ? kEmpty : RowAt(way.lower);
  const int64_t from = std::max({row.begin, way.need, way.held + upper.begin, lower.begin});
  if (from >= row.end) return 0;
  // Rows fall: from some memory on, what is known is at least as good as the way's time.
  Value* const values = ValueAt(row, from);
  const Value time = way.time;
  if (*values <= time) return 0;
  const int64_t count =
      std::partition_point(values, ValueAt(row, row.end), [time](Value v) { return v > time; }) -
      values;
  const int64_t above = std::clamp<int64_t>(way.held + upper.end - from, 0, count);
  const int64_t below = std::clamp<int64_t>(lower.end - from, 0, count);
  const int64_t both = std::min(above, below);
  const auto& kernel = BestKernels().narrow;
  if (both > 0) {
    kernel.min_plus_row(values, ValueAt(upper, from - way.held), ValueAt(lower, from), time, both);
  }
  if (above > both) {
    kernel.min_row(values + both, ValueAt(upper, from - way.held + both), time, above - both);
  }
  if (below > both) {
    kernel.min_row(values + both, ValueAt(lower, from + both), time, below - both);
  }
  for (int64_t i = std::max(above, below); i < count; ++i) values[i] = std::min(values[i], time);
  return count;
}

SparseTable::Value SparseTable::At(int64_t row_index, int64_t memory) const {
  if (row_index == kNothing) return 0;
  const Row& row = RowAt(row_index);
  if (memory < row.begin) return kInfinityAs<Value>;
  return memory >= row.end ? 0 : *ValueAt(row, memory);
}

SparseTable::Way SparseTable::Choose(int s, int t, bool saved, int64_t memory) const {
  const Value value = At(RowOf(s, t, saved), memory);
  Way chosen{};
  ForEachWay(s, t, saved, [&](const Way& way) {
    chosen = way;
    if (memory < way.need || way.time > value) return true;
    const Value above = At(way.upper, memory - way.held);
    if (above > value - way.time) return true;
    return At(way.lower, memory) != value - way.time - above;
  });
  return chosen;
}

int64_t SparseTable::Overhead(int64_t memory) const {
  const int64_t m = memory - space_.activation(0);
  if (m < 0 || memory < space_.input_gradient()) return kInfinity;
  const Value value = At(RowOf(1, space_.last(), false), m);
  return value >= kInfinityAs<Value> ? kInfinity : int64_t{value};
}

Schedule SparseTable::Backtrack(int64_t memory) const {
  return BuildSchedule(
      space_.last(), memory - space_.activation(0), [this](const Subchain& x, int64_t m) {
        int s = x.first, t = x.last;
        intervals_.MoveToComputed(&s, &t);
        const Way way = Choose(s, t, x.saved, m);
        // Back to the interval's own stages.
        const int stage = way.stage + x.first - s;
        Alternative a;
        a.held = way.held;
        const Subchain above = stage < x.last ? Subchain{stage + 1, x.last, x.saved} : Subchain();
        switch (way.kind) {
          case Way::kKeep:
            if (!(x.saved && stage == x.last)) a.save = stage;
            a.backward = stage;
            a.upper = above;
            break;
          case Way::kSplit:
            a.run_first = x.first;
            a.run_last = stage;
            a.upper = above;
            a.lower = {x.first, stage};
            break;
          case Way::kSave:
            a.run_first = x.first;
            a.run_last = stage - 1;
            a.save = stage;
            a.drop_before = stage - 1;
            a.upper = above;
            a.lower = {x.first, stage, true};
            break;
        }
        return a;
      });
}

absl::StatusOr<std::unique_ptr<SparseTable>> SparseTable::Compute(const PersistentSpace& space,
                                                                  const SparseIntervals& intervals,
                                                                  int64_t slots,
                                                                  const SolveContext& context) {
  const auto refused = [&](int64_t bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a table of ", slots, " slots for some intervals of ", space.last(),
                     " stages takes ", bytes, " bytes; the limit is ", context.memory().value()));
  };
  const int64_t beside = 2 * intervals.size() * static_cast<int64_t>(sizeof(Row));
  if (beside > context.memory().value()) return refused(beside);
  StopPoll poll(context.stop());
  std::unique_ptr<SparseTable> table(new SparseTable(space, intervals, slots));
  absl::Status status = table->FindExtents(&poll);
  if (!status.ok()) return status;
  if (table->bytes() > context.memory().value() - beside) return refused(table->bytes() + beside);
  table->values_ = NewAlignedArray<Value>(table->count_);
  if (table->values_ == nullptr) return absl::ResourceExhaustedError("no memory for a table");
  status = table->Fill(context, &poll);
  if (!status.ok()) return status;
  return table;
}

}  // namespace stowage
