#include "solvers/chain/internal/non_persistent_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/min_plus_dispatch.h"

namespace stowage {
namespace {

using Visit = absl::FunctionRef<bool(const Alternative&)>;

// What is held of stage t from the start: its gradient, and what is saved of it.
int64_t HeldAtTop(const PersistentSpace& space, const Subchain& x) {
  return space.gradient(x.last) + (x.saved ? space.saved(x.last) : 0);
}

// Whether `x` may save all of stage k: that has not been done yet.
bool MaySave(const Subchain& x, int k) { return !(x.saved && k == x.last); }

// What is above stage k in `x`.
Subchain Above(const Subchain& x, int k) {
  return k < x.last ? Subchain{k + 1, x.last, x.saved} : Subchain();
}

void VisitSingleStage(const PersistentSpace& space, const Subchain& x, Visit visit) {
  Alternative a;
  a.need = x.saved ? space.BackwardNeed(x.last) : space.KeepAllNeed(x.last, x.last);
  if (!x.saved) a.save = x.last;
  a.backward = x.last;
  visit(a);
}

void VisitFixed(const PersistentSpace& space, bool moving, const Subchain& x, Visit visit) {
  const int s = x.first;
  const int64_t top = HeldAtTop(space, x);
  Alternative keep;
  keep.need = std::max(top + space.SavingNeed(s), space.BackwardNeed(s));
  keep.held = space.saved(s);
  keep.save = keep.backward = s;
  keep.upper = Above(x, s);
  if (!visit(keep)) return;

  int64_t run_need = space.FirstRunNeed(s);
  for (int k = s + 1; k <= x.last && space.Recomputable(s, k - 1); ++k) {
    if (k > s + 1) run_need = space.ExtendRunNeed(run_need, k - 1);
    const int64_t input = space.activation(k - 1);
    Alternative run;
    run.need = top + run_need;
    run.run_first = s;
    run.run_last = k - 1;

    Alternative split = run;  // a^{k-1} is a checkpoint until its backward
    split.held = input;
    split.stops = k - 1;
    split.upper = {k, x.last, x.saved};
    split.lower = {s, k - 1};
    if (!visit(split)) return;

    if (MaySave(x, k)) {
      Alternative save = run;
      save.need = std::max(run.need, top + input + space.SavingNeed(k));
      save.held = space.saved(k);
      save.save = k;
      save.drop_before = k - 1;
      save.upper = Above(x, k);
      save.lower = {s, k, true};
      if (k == x.last) save.goes_on = k;
      if (!visit(save)) return;
    }
    if (moving) {
      run.stops = k - 1;
      run.upper = {s, x.last, x.saved, k};
      if (!visit(run)) return;
    }
  }
}

// The movable checkpoint stays and another one, a^{k-1} or saved k, is made from it for the stages
// behind. Then it goes, or stays for what remains.
bool VisitWithAnother(Alternative another, const Subchain& lower, int c, Visit visit) {
  another.lower = lower;
  another.lower.movable = c;
  if (!visit(another)) return false;
  another.goes_on_too = c - 1;
  another.lower.movable = 0;
  another.drop_between = c - 1;
  return visit(another);
}

void VisitMovable(const PersistentSpace& space, const Subchain& x, Visit visit) {
  const int s = x.first, c = x.movable;
  const int64_t top = HeldAtTop(space, x);
  const int64_t here = space.activation(c - 1);
  Alternative stay;  // until its backward
  stay.held = here;
  stay.upper = {c, x.last, x.saved};
  stay.lower = {s, c - 1};
  if (!visit(stay)) return;

  if (MaySave(x, c)) {
    Alternative save;
    save.need = top + here + space.SavingNeed(c);
    save.held = space.saved(c);
    save.save = c;
    save.drop_before = c - 1;
    save.upper = Above(x, c);
    save.lower = {s, c, true};
    if (c == x.last) save.goes_on = c;
    save.goes_on_too = c - 1;
    if (!visit(save)) return;
  }
  const int64_t first_need = here + space.FirstRunNeed(c);
  int64_t run_need = space.FirstRunNeed(c);
  for (int k = c + 1; k <= x.last && space.Recomputable(c, k - 1); ++k) {
    if (k > c + 1) run_need = space.ExtendRunNeed(run_need, k - 1);
    const int64_t input = space.activation(k - 1);
    Alternative run;
    run.run_first = c;
    run.run_last = k - 1;

    Alternative move = run;
    move.need = top + std::max(first_need, run_need);
    move.drop_first_input = true;
    move.stops = k - 1;
    move.goes_on_too = c - 1;
    move.upper = {s, x.last, x.saved, k};
    if (!visit(move)) return;

    run.need = top + here + run_need;
    Alternative plain = run;
    plain.held = here + input;
    plain.stops = k - 1;
    plain.upper = {k, x.last, x.saved};
    if (!VisitWithAnother(plain, {s, k - 1}, c, visit)) return;

    if (!MaySave(x, k)) continue;
    run.need = std::max(run.need, top + here + input + space.SavingNeed(k));
    run.held = here + space.saved(k);
    run.save = k;
    run.drop_before = k - 1;
    run.upper = Above(x, k);
    if (k == x.last) run.goes_on = k;
    if (!VisitWithAnother(run, {s, k, true}, c, visit)) return;
  }
}

void AppendForwards(const Alternative& a, Schedule* schedule) {
  for (int l = a.run_first; l <= a.run_last; ++l) {
    const bool keep_input = l == a.run_first && !a.drop_first_input;
    schedule->push_back(keep_input ? ForwardNoSave(l) : ForwardNoSaveFreeInput(l));
  }
  if (a.save > 0) schedule->push_back(ForwardSave(a.save));
  if (a.drop_before > 0) schedule->push_back(Discard(TensorKind::kActivation, a.drop_before));
}

// About how many the intervals of up to `lengths` stages from one stage have: two or three for every
// later stage, and of a movable checkpoint five.
double Alternatives(bool moving, int64_t lengths) {
  const double n = static_cast<double>(lengths);
  return moving ? 3 * n * (n - 1) + 5 * n * (n - 1) * (2 * n - 1) / 6 : 2 * n * n;
}

}  // namespace

void ForEachAlternative(const PersistentSpace& space, bool moving, const Subchain& x, Visit visit) {
  if (x.movable > 0) {
    VisitMovable(space, x, visit);
  } else if (x.first == x.last) {
    VisitSingleStage(space, x, visit);
  } else {
    VisitFixed(space, moving, x, visit);
  }
}

SubchainIndex::SubchainIndex(const PersistentSpace& space, bool moving)
    : last_(space.last()),
      moving_(moving),
      repeats_(FindStageRepeats(space)),
      begin_(static_cast<size_t>(space.last()) + 1) {
  for (int s = last_; s >= 1; --s) {
    const int64_t shared = repeats_[static_cast<size_t>(s)].length;
    const int64_t all = last_ - s + 1;
    begin_[static_cast<size_t>(s)] = size_ - Shorter(shared);
    size_ += Shorter(all) - Shorter(shared);
    alternatives_ += Alternatives(moving, all) - Alternatives(moving, shared);
  }
}

void SubchainIndex::ForEach(absl::FunctionRef<bool(const Subchain&)> visit) const {
  for (int length = 0; length < last_; ++length) {
    for (int s = 1; s + length <= last_; ++s) {
      if (length < repeats_[static_cast<size_t>(s)].length) continue;
      if (!VisitInterval(s, s + length, visit)) return;
    }
  }
}

bool SubchainIndex::VisitInterval(int s, int t,
                                  absl::FunctionRef<bool(const Subchain&)> visit) const {
  for (const bool saved : {true, false}) {
    for (int c = moving_ ? t : s; c > s; --c) {
      if (!visit({s, t, saved, c})) return false;
    }
    if (!visit({s, t, saved, 0})) return false;
  }
  return true;
}

Schedule BuildSchedule(int last, int64_t memory,
                       absl::FunctionRef<Alternative(const Subchain&, int64_t)> choose) {
  struct Task {
    Subchain subchain;  // empty: emit the instruction
    int64_t memory;
    Instruction instruction;
  };
  Schedule schedule;
  std::vector<Task> stack = {{{1, last}, memory, {}}};
  while (!stack.empty()) {
    const Task task = stack.back();
    stack.pop_back();
    if (task.subchain.empty()) {
      schedule.push_back(task.instruction);
      continue;
    }
    const Alternative a = choose(task.subchain, task.memory);
    AppendForwards(a, &schedule);
    if (a.backward > 0) stack.push_back({{}, 0, Backward(a.backward)});
    if (!a.lower.empty()) stack.push_back({a.lower, task.memory, {}});
    if (a.drop_between > 0)
      stack.push_back({{}, 0, Discard(TensorKind::kActivation, a.drop_between)});
    if (!a.upper.empty()) stack.push_back({a.upper, task.memory - a.held, {}});
  }
  return schedule;
}

namespace {

// Some five seconds of one core.
constexpr double kMaxAlternatives = 1.5e8;

NonPersistentExtents::Extent ExtentOf(const PersistentSpace& space,
                                      const NonPersistentExtents& known, const Subchain& x) {
  NonPersistentExtents::Extent result;
  int32_t number = 0;
  ForEachAlternative(space, known.moving, x, [&](const Alternative& a) {
    int64_t least = a.need, all_kept = a.need;
    for (const auto& [part, held] : {std::pair(a.upper, a.held), std::pair(a.lower, int64_t{0})}) {
      if (part.empty()) continue;
      least = std::max(least, held + known[part].least);
      if (number == 0) all_kept = std::max(all_kept, held + known[part].all_kept);
    }
    if (number == 0) result.all_kept = all_kept;
    if (number == 0 || least < result.least) {
      result.least = least;
      result.choice = number;
    }
    ++number;
    return true;
  });
  return result;
}

}  // namespace

absl::StatusOr<NonPersistentExtents> ComputeExtents(const PersistentSpace& space, bool moving,
                                                    const SolveContext& context) {
  // At the least there is an interval of every length.
  if (space.last() > kMaxIntervalStages + 1 ||
      2.0 * space.last() * space.last() > kMaxAlternatives) {
    return absl::ResourceExhaustedError(
        absl::StrCat(space.last(), " stages are too many for a recurrence of all their intervals"));
  }
  NonPersistentExtents result{moving, SubchainIndex(space, moving), {}};
  absl::Status status = context.CheckStop();
  if (!status.ok()) return status;
  StopPoll poll(context.stop());
  const SubchainIndex& index = result.index;
  const int64_t bytes = index.size() * static_cast<int64_t>(sizeof(NonPersistentExtents::Extent));
  if (index.alternatives() > kMaxAlternatives || bytes > context.memory().value() / 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat(space.last(), " stages have ", index.alternatives(), " alternatives of ",
                     kMaxAlternatives, ", and their subchains take ", bytes, " bytes"));
  }
  result.extents.resize(static_cast<size_t>(index.size()));
  index.ForEach([&](const Subchain& x) {
    // An alternative takes as long as some tens of the poll's steps.
    status = poll.Spend(int64_t{64} * (x.last - x.first + 1));
    if (!status.ok()) return false;
    result.extents[static_cast<size_t>(result.index(x))] = ExtentOf(space, result, x);
    return true;
  });
  if (!status.ok()) return status;
  return result;
}

int64_t LeastBudgetOf(const PersistentSpace& space, const NonPersistentExtents& extents) {
  // Beside the recurrence: delta^0 alone is left at the end.
  return std::max(space.activation(0) + extents[{1, space.last()}].least, space.input_gradient());
}

Schedule LeastSchedule(const PersistentSpace& space, const NonPersistentExtents& extents) {
  return BuildSchedule(space.last(), extents[{1, space.last()}].least,
                       [&](const Subchain& x, int64_t) {
                         int32_t left = extents[x].choice;
                         Alternative chosen;
                         ForEachAlternative(space, extents.moving, x, [&](const Alternative& a) {
                           chosen = a;
                           return left-- > 0;
                         });
                         return chosen;
                       });
}

namespace {

// Up to here 64-bit values cost little.
constexpr int kMaxWideStages = 64;

// More than what any schedule of the recurrence repeats: a stage runs at most twice before each
// backward.
double MostOverhead(const PersistentSpace& space) {
  return 2.0 * space.last() * static_cast<double>(space.ForwardTime(1, space.last()));
}

template <class T>
class Table final : public NonPersistentTable {
 public:
  Table(const PersistentSpace& space, NonPersistentExtents extents, int64_t slots,
        int64_t time_unit)
      : NonPersistentTable(time_unit), space_(space), extents_(std::move(extents)), slots_(slots) {
    forward_.push_back(0);
    gain_.push_back(0);
    for (int l = 1; l <= space.last(); ++l) {
      const int64_t time = space.ForwardTime(l, l);
      const auto in_units = [time_unit](int64_t ns) {
        return static_cast<T>(ns / time_unit + (ns % time_unit != 0 ? 1 : 0));
      };
      forward_.push_back(forward_.back() + in_units(time));
      gain_.push_back(in_units(time) - in_units(time - space.StopGain(l)));
    }
    rows_.reserve(extents_.extents.size());
    for (const NonPersistentExtents::Extent& e : extents_.extents) {
      const int64_t begin = std::min(e.least, slots + 1);
      const int64_t end = std::max(std::min(e.all_kept, slots + 1), begin);
      rows_.push_back({begin, end, values_count_});
      values_count_ += end - begin;
    }
  }

  absl::Status Compute(const SolveContext& context) {
    const int64_t left =
        context.memory().value() - BytesBesideValues(static_cast<int64_t>(extents_.extents.size()));
    if (values_count_ > left / static_cast<int64_t>(sizeof(T))) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a table of ", slots_, " slots for ", space_.last(),
                       " stages is over the limit of ", context.memory().value(), " bytes"));
    }
    values_ = NewAlignedArray<T>(values_count_);
    if (values_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for a table of ", slots_,
                                                       " slots for ", space_.last(), " stages"));
    }
    StopPoll poll(context.stop());
    absl::Status status;
    int64_t done = 0;
    extents_.index.ForEach([&](const Subchain& x) {
      ComputeRow(x, &poll, &status);
      if (x.movable == 0 && !x.saved && x.last == space_.last()) {
        context.Report(static_cast<double>(++done) / space_.last());
      }
      return status.ok();
    });
    return status;
  }

  int64_t Overhead(int64_t memory) const override {
    const int64_t m = memory - space_.activation(0);
    if (m < 0 || memory < space_.input_gradient()) return kInfinity;
    const T value = Value(Whole(), m);
    return value >= kInfinityAs<T> ? kInfinity : static_cast<int64_t>(value);
  }

  Schedule Backtrack(int64_t memory) const override {
    return BuildSchedule(space_.last(), memory - space_.activation(0),
                         [this](const Subchain& x, int64_t m) { return Choose(x, m); });
  }

 private:
  // The memories [begin, end) of a subchain are at values_[offset...]; from `end` on the value is 0.
  struct Row {
    int64_t begin, end, offset;
  };

  Subchain Whole() const { return {1, space_.last()}; }
  const Row& RowOf(const Subchain& x) const {
    return rows_[static_cast<size_t>(extents_.index(x))];
  }

  T Value(const Subchain& x, int64_t m) const {
    if (x.empty()) return 0;
    const Row& row = RowOf(x);
    if (m < row.begin) return kInfinityAs<T>;
    return m >= row.end ? T{0} : *At(row, m);
  }

  // Where the value of `row` at m is, or would be: some of its neighbours are not read.
  T* At(const Row& row, int64_t m) const { return values_.get() + (row.offset + m - row.begin); }

  T Time(const Alternative& a) const {
    const auto gain = [this](int stage) { return gain_[static_cast<size_t>(stage)]; };
    return forward_[static_cast<size_t>(a.run_last)] -
           forward_[static_cast<size_t>(a.run_first) - 1] - gain(a.stops) + gain(a.goes_on) +
           gain(a.goes_on_too);
  }

  void ComputeRow(const Subchain& x, StopPoll* poll, absl::Status* status) {
    const Row& row = RowOf(x);
    std::fill(At(row, row.begin), At(row, row.end), kInfinityAs<T>);
    // Memory that is touched for the first time takes longer than to fill it.
    *status = poll->Spend(64 + 4 * (row.end - row.begin));
    if (row.begin == row.end || !status->ok()) return;
    ForEachAlternative(space_, extents_.moving, x, [&](const Alternative& a) {
      *status = poll->Spend(64 + Relax(row, a));
      return status->ok();
    });
  }

  // Lets one alternative improve a row; how many values it looked at.
  int64_t Relax(const Row& row, const Alternative& a) {
    static constexpr Row kNothing = {0, 0, 0};
    const Row& upper = a.upper.empty() ? kNothing : RowOf(a.upper);
    const Row& lower = a.lower.empty() ? kNothing : RowOf(a.lower);
    const int64_t from = std::max({row.begin, a.need, a.held + upper.begin, lower.begin});
    if (from >= row.end) return 0;
    const T time = Time(a);
    // Rows fall: from some memory on, what is known is at least as good as the alternative's time.
    T* const values = At(row, from);
    const int64_t count =
        std::partition_point(values, At(row, row.end), [time](T v) { return v > time; }) - values;
    const int64_t above = std::clamp<int64_t>(a.held + upper.end - from, 0, count);
    const int64_t below = std::clamp<int64_t>(lower.end - from, 0, count);
    const int64_t both = std::min(above, below);
    kernel_.min_plus_row(values, At(upper, from - a.held), At(lower, from), time, both);
    kernel_.min_row(values + both, At(upper, from - a.held + both), time, above - both);
    kernel_.min_row(values + both, At(lower, from + both), time, below - both);
    std::fill(values + std::max(above, below), values + count, time);
    return count;
  }

  Alternative Choose(const Subchain& x, int64_t m) const {
    const T value = Value(x, m);
    Alternative chosen;
    ForEachAlternative(space_, extents_.moving, x, [&](const Alternative& a) {
      chosen = a;
      if (m < a.need || Time(a) > value) return true;
      const T above = Value(a.upper, m - a.held);
      const T below = Value(a.lower, m);
      return above > value || below > value || Time(a) + above + below != value;
    });
    return chosen;
  }

  const PersistentSpace& space_;
  const NonPersistentExtents extents_;
  const int64_t slots_;
  const MinPlusKernel<T>& kernel_ = KernelFor<T>(BestKernels());
  std::vector<T> forward_;  // of stages 1..l
  std::vector<T> gain_;     // by stage, of its recompute that stops early
  std::vector<Row> rows_;   // by index
  int64_t values_count_ = 0;
  AlignedArray<T> values_;  // each row is filled when it is computed
};

template <class T>
absl::StatusOr<std::unique_ptr<NonPersistentTable>> ComputeIn(const PersistentSpace& space,
                                                              NonPersistentExtents extents,
                                                              int64_t slots,
                                                              const SolveContext& context) {
  const double largest = 0.9 * static_cast<double>(kInfinityAs<T>);
  const int64_t unit = static_cast<int64_t>(MostOverhead(space) / largest) + 1;
  auto table = std::make_unique<Table<T>>(space, std::move(extents), slots, unit);
  absl::Status status = table->Compute(context);
  if (!status.ok()) return status;
  return std::unique_ptr<NonPersistentTable>(std::move(table));
}

}  // namespace

int64_t NonPersistentTable::BytesBesideValues(int64_t subchains) {
  constexpr size_t kRow = 3 * sizeof(int64_t);
  return subchains * static_cast<int64_t>(kRow + 2 * sizeof(NonPersistentExtents::Extent));
}

absl::StatusOr<std::unique_ptr<NonPersistentTable>> NonPersistentTable::Compute(
    const PersistentSpace& space, bool moving, int64_t slots, const SolveContext& context) {
  absl::StatusOr<NonPersistentExtents> extents = ComputeExtents(space, moving, context);
  if (!extents.ok()) return extents.status();
  const bool narrow_is_exact =
      MostOverhead(space) < 0.9 * static_cast<double>(kInfinityAs<int32_t>);
  if (space.last() <= kMaxWideStages && !narrow_is_exact) {
    return ComputeIn<int64_t>(space, *std::move(extents), slots, context);
  }
  return ComputeIn<int32_t>(space, *std::move(extents), slots, context);
}

}  // namespace stowage
