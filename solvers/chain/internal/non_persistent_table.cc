#include "solvers/chain/internal/non_persistent_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/min_plus_dispatch.h"

namespace stowage {
namespace {

// Up to here 64-bit values cost little.
constexpr int kMaxWideStages = 64;

// More than what any schedule of the recurrence repeats: a stage runs at most twice before each
// backward.
double MostExcess(const PersistentSpace& space) {
  return 2.0 * space.last() * static_cast<double>(space.ForwardTime(1, space.last()));
}

template <class T>
class Table final : public NonPersistentTable {
 public:
  Table(const PersistentSpace& space, NonPersistentExtents extents, int64_t slots,
        int64_t time_unit)
      : NonPersistentTable(time_unit), space_(space), extents_(std::move(extents)), slots_(slots) {
    forward_.push_back(0);
    for (int l = 1; l <= space.last(); ++l) {
      const int64_t time = space.ForwardTime(l, l);
      forward_.push_back(forward_.back() +
                         static_cast<T>(time / time_unit + (time % time_unit != 0 ? 1 : 0)));
    }
    rows_.reserve(extents_.extents.size());
    for (const NonPersistentExtents::Extent& e : extents_.extents) {
      const int64_t begin = std::min(e.least, slots + 1);
      const int64_t end = std::max(std::min(e.all_kept, slots + 1), begin);
      rows_.push_back({begin, end, values_count_});
      values_count_ += end - begin;
    }
  }

  absl::Status Compute(const SolveOptions& options) {
    const int64_t left = options.table_limit.value() -
                         BytesBesideValues(static_cast<int64_t>(extents_.extents.size()));
    if (values_count_ > left / static_cast<int64_t>(sizeof(T))) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a table of ", slots_, " slots for ", space_.last(),
                       " stages is over the limit of ", options.table_limit.value(), " bytes"));
    }
    values_ = NewAlignedArray<T>(values_count_);
    if (values_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for a table of ", slots_,
                                                       " slots for ", space_.last(), " stages"));
    }
    StopPoll poll(options.stop);
    absl::Status status;
    int64_t done = 0;
    extents_.index.ForEach([&](const Subchain& x) {
      ComputeRow(x, &poll, &status);
      if (options.progress && x.movable == 0 && !x.saved && x.last == space_.last()) {
        options.progress(static_cast<double>(++done) / space_.last());
      }
      return status.ok();
    });
    return status;
  }

  int64_t Excess(int64_t memory) const override {
    const int64_t m = memory - space_.activation(0);
    if (m < 0 || memory < space_.input_gradient()) return kNever;
    const T value = Value(Whole(), m);
    return value >= kNeverAs<T> ? kNever : static_cast<int64_t>(value);
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
    if (m < row.begin) return kNeverAs<T>;
    return m >= row.end ? T{0} : *At(row, m);
  }

  // Where the value of `row` at m is, or would be: some of its neighbours are not read.
  T* At(const Row& row, int64_t m) const { return values_.get() + (row.offset + m - row.begin); }

  T Time(const Alternative& a) const {
    return forward_[static_cast<size_t>(a.run_last)] -
           forward_[static_cast<size_t>(a.run_first) - 1];
  }

  void ComputeRow(const Subchain& x, StopPoll* poll, absl::Status* status) {
    const Row& row = RowOf(x);
    std::fill(At(row, row.begin), At(row, row.end), kNeverAs<T>);
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
  std::vector<Row> rows_;   // by index
  int64_t values_count_ = 0;
  AlignedArray<T> values_;  // each row is filled when it is computed
};

template <class T>
absl::StatusOr<std::unique_ptr<NonPersistentTable>> ComputeIn(const PersistentSpace& space,
                                                              NonPersistentExtents extents,
                                                              int64_t slots,
                                                              const SolveOptions& options) {
  const double room = 0.9 * static_cast<double>(kNeverAs<T>);
  const int64_t unit = static_cast<int64_t>(MostExcess(space) / room) + 1;
  auto table = std::make_unique<Table<T>>(space, std::move(extents), slots, unit);
  absl::Status status = table->Compute(options);
  if (!status.ok()) return status;
  return std::unique_ptr<NonPersistentTable>(std::move(table));
}

}  // namespace

int64_t NonPersistentTable::BytesBesideValues(int64_t subchains) {
  constexpr size_t kRow = 3 * sizeof(int64_t);
  return subchains * static_cast<int64_t>(kRow + 2 * sizeof(NonPersistentExtents::Extent));
}

absl::StatusOr<std::unique_ptr<NonPersistentTable>> NonPersistentTable::Compute(
    const PersistentSpace& space, bool moving, int64_t slots, const SolveOptions& options) {
  absl::StatusOr<NonPersistentExtents> extents = ComputeExtents(space, moving, options);
  if (!extents.ok()) return extents.status();
  const bool narrow_is_exact = MostExcess(space) < 0.9 * static_cast<double>(kNeverAs<int32_t>);
  if (space.last() <= kMaxWideStages && !narrow_is_exact) {
    return ComputeIn<int64_t>(space, *std::move(extents), slots, options);
  }
  return ComputeIn<int32_t>(space, *std::move(extents), slots, options);
}

}  // namespace stowage
