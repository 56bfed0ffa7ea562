// The engine for chains whose stages repeat: one row of memory slots per distinct interval, from the
// least memory of the interval to the one at which all of it is kept. Internal to solvers/chain.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/persistent_engine.h"

namespace stowage {
namespace {

// C of an interval over [begin, end); never below, 0 from `end` on.
struct RowRange {
  int32_t begin;
  int32_t end;
  int64_t at;  // of the first value
};

template <class T>
class Rows final : public PersistentEngine {
 public:
  explicit Rows(const EngineInput& input) : ids_(input.slots.stages) {
    ranges_.reserve(static_cast<size_t>(DistinctIntervals(input.repeats)));
  }

  // What an object takes without its values.
  static int64_t IndexBytes(const EngineInput& input) {
    return IntervalTable<int32_t>::SizeBytes(input.slots.stages) +
           DistinctIntervals(input.repeats) * static_cast<int64_t>(sizeof(RowRange));
  }

  // Numbers the rows. CANCELLED, DEADLINE_EXCEEDED.
  absl::Status Number(const EngineInput& input, StopPoll* poll) {
    const int stages = input.slots.stages;
    for (int s = stages - 1; s >= 0; --s) {
      absl::Status status = poll->Spend(int64_t{8} * (stages - s));
      if (!status.ok()) return status;
      const StageRepeat repeat = input.repeats[static_cast<size_t>(s) + 1];
      for (int t = s; t < stages; ++t) {
        const int length = t - s + 1;
        if (length <= repeat.length) {
          ids_(s + 1, t + 1) = ids_(repeat.stage, repeat.stage + length - 1);
          continue;
        }
        ids_(s + 1, t + 1) = static_cast<int32_t>(ranges_.size());
        const int32_t begin = input.live.least(s, t);
        const int32_t end = std::max(input.live.all_kept(s, t), begin);
        ranges_.push_back({begin, end, count_});
        count_ += end - begin;
      }
    }
    return absl::OkStatus();
  }

  bool Allocate() {
    values_ = NewAlignedArray<T>(count_);
    return values_ != nullptr;
  }
  int64_t bytes() const override { return count_ * static_cast<int64_t>(sizeof(T)); }

  int64_t Value(int s, int t, int64_t m) const override {
    const RowRange& range = Range(s, t);
    if (m < range.begin) return kNever;
    if (m >= range.end) return 0;
    const T value = values_[static_cast<size_t>(range.at + m - range.begin)];
    return value < kNeverAs<T> ? static_cast<int64_t>(value) : kNever;
  }

  const RowRange& Range(int s, int t) const {
    return ranges_[static_cast<size_t>(ids_(s + 1, t + 1))];
  }
  // Of memory m in [begin, end).
  T* At(const RowRange& range, int32_t m) const {
    return values_.get() + (range.at + m - range.begin);
  }

 private:
  IntervalTable<int32_t> ids_;  // of ranges_, by interval
  std::vector<RowRange> ranges_;
  int64_t count_ = 0;
  AlignedArray<T> values_;
};

template <class T>
class RowSolver {
 public:
  RowSolver(const EngineInput& input, const MinPlusKernel<T>& kernel, const Rows<T>* rows)
      : input_(input), slots_(input.slots), kernel_(kernel), rows_(*rows) {}

  absl::Status Run(const SolveOptions& options) const {
    StopPoll poll(options.stop);
    const int stages = slots_.stages;
    for (int s = stages - 1; s >= 0; --s) {
      const StageRepeat repeat = input_.repeats[static_cast<size_t>(s) + 1];
      for (int t = s + repeat.length; t < stages; ++t) {
        absl::Status status = poll.Spend(ComputeRow(s, t));
        if (!status.ok()) return status;
      }
      if (options.progress) options.progress(static_cast<double>(stages - s) / stages);
    }
    return absl::OkStatus();
  }

 private:
  // Returns the number of steps.
  int64_t ComputeRow(int s, int t) const {
    const RowRange& row = rows_.Range(s, t);
    if (row.begin >= row.end) return 1;
    std::fill(rows_.At(row, row.begin), rows_.At(row, row.end), kNeverAs<T>);
    if (s == t) return row.end - row.begin;  // all or nothing
    Keep(s, t, row);
    int64_t steps = row.end - row.begin;
    const int32_t gradient = slots_.gradient[static_cast<size_t>(t)];
    const int32_t* need = slots_.RunNeed(s);
    int32_t end = row.end;
    for (int split = s + 1; split <= t; ++split) {
      const T forward = Forward(s, split);
      // What is this fast already gains nothing from here on: rows never rise with memory.
      while (end > row.begin && *rows_.At(row, end - 1) <= forward) --end;
      const int32_t begin = std::max(row.begin, gradient + need[split]);
      if (begin >= end) break;  // the need grows with the split
      Split(s, t, split, row, begin, end);
      steps += 16 + end - begin;
    }
    return steps;
  }

  T Forward(int s, int split) const {
    return static_cast<T>(input_.forward[static_cast<size_t>(split)] -
                          input_.forward[static_cast<size_t>(s)]);
  }

  void Keep(int s, int t, const RowRange& row) const {
    const size_t i = static_cast<size_t>(s);
    const int32_t need = std::max(slots_.gradient[static_cast<size_t>(t)] + slots_.saving_need[i],
                                  slots_.backward_need[i]);
    const RowRange& inner = rows_.Range(s + 1, t);
    const int32_t saved = slots_.saved[i];
    const int32_t begin = std::max({row.begin, need, inner.begin + saved});
    AddOne(row, begin, row.end, inner, saved, T{0});
  }

  // row = min(row, constant + other shifted up) over [begin, end), where the other fits.
  void AddOne(const RowRange& row, int32_t begin, int32_t end, const RowRange& other, int32_t shift,
              T constant) const {
    const int32_t zero = std::min(other.end + shift, end);
    if (begin < zero) {
      kernel_.min_row(rows_.At(row, begin), rows_.At(other, begin - shift), constant, zero - begin);
    }
    for (int32_t m = std::max(begin, zero); m < end; ++m)
      *rows_.At(row, m) = std::min(*rows_.At(row, m), constant);
  }

  void Split(int s, int t, int split, const RowRange& row, int32_t begin, int32_t end) const {
    const RowRange& left = rows_.Range(s, split - 1);
    const RowRange& right = rows_.Range(split, t);
    const int32_t shift = slots_.input[static_cast<size_t>(split)];
    const T forward = Forward(s, split);
    begin = std::max({begin, left.begin, right.begin + shift});
    const int32_t both = std::min({left.end, right.end + shift, end});
    if (begin < both) {
      kernel_.min_plus_row(rows_.At(row, begin), rows_.At(left, begin),
                           rows_.At(right, begin - shift), forward, both - begin);
      begin = both;
    }
    if (begin >= end) return;
    if (begin < left.end) {
      AddOne(row, begin, end, left, 0, forward);
    } else {
      AddOne(row, begin, end, right, shift, forward);
    }
  }

  const EngineInput& input_;
  const PersistentSlots& slots_;
  const MinPlusKernel<T>& kernel_;
  const Rows<T>& rows_;
};

}  // namespace

template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows(const EngineInput& input,
                                                              const MinPlusKernels& kernels,
                                                              const SolveOptions& options) {
  const PersistentSlots& slots = input.slots;
  const int64_t beside = input.bytes_beside + Rows<T>::IndexBytes(input);
  absl::Status status = CheckTableSize(slots.stages, slots.slots, beside, options);
  if (!status.ok()) return status;
  auto rows = std::make_unique<Rows<T>>(input);
  StopPoll poll(options.stop);
  status = rows->Number(input, &poll);
  if (!status.ok()) return status;
  status = CheckTableSize(slots.stages, slots.slots, beside + rows->bytes(), options);
  if (!status.ok()) return status;
  if (!rows->Allocate()) return NoMemoryForTable(rows->bytes());
  status = RowSolver<T>(input, KernelFor<T>(kernels), rows.get()).Run(options);
  if (!status.ok()) return status;
  return std::unique_ptr<PersistentEngine>(std::move(rows));
}

template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows<int32_t>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveOptions& options);
template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows<double>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveOptions& options);
template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows<int64_t>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveOptions& options);

}  // namespace stowage
