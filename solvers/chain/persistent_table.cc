#include "solvers/chain/persistent_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/persistent_tiles.h"
#include "solvers/chain/persistent_space.h"

namespace stowage {

PersistentSlots::PersistentSlots(const PersistentSpace& space, int64_t slot_count)
    : stages(space.last()), slots(static_cast<int32_t>(slot_count)) {
  const auto cut = [slot_count](int64_t size) {
    return static_cast<int32_t>(std::min(size, slot_count + 1));
  };
  for (int s = 1; s <= stages; ++s) {
    input.push_back(cut(space.activation(s - 1)));
    saved.push_back(cut(space.saved(s)));
    gradient.push_back(cut(space.gradient(s)));
    saving_need.push_back(cut(space.SavingNeed(s)));
    backward_need.push_back(cut(space.BackwardNeed(s)));
    leaf_need.push_back(cut(space.KeepAllNeed(s, s)));
  }
  FillRunNeeds(space);
}

void PersistentSlots::FillRunNeeds(const PersistentSpace& space) {
  for (int s = 0; s < stages; ++s) {
    run_begin.push_back(run_need.size() - static_cast<size_t>(s));
    int64_t need = space.FirstRunNeed(s + 1);
    run_need.push_back(0);  // keeps index s' = s in range
    for (int split = s + 1; split < stages; ++split) {
      if (split > s + 1) need = space.ExtendRunNeed(need, split);
      const bool allowed = space.Recomputable(s + 1, split);
      run_need.push_back(allowed ? static_cast<int32_t>(std::min<int64_t>(need, slots + 1))
                                 : slots + 1);
    }
  }
}

absl::StatusOr<LiveSlots> LiveSlots::Compute(const PersistentSlots& slots,
                                             const MinimumMemory& least, StopPoll* poll) {
  LiveSlots live(slots.stages);
  for (int t = 0; t < slots.stages; ++t) {
    absl::Status status = poll->Spend(int64_t{16} * (t + 1));
    if (!status.ok()) return status;
    const size_t ti = static_cast<size_t>(t);
    int32_t inner = 0;
    for (int s = t; s >= 0; --s) {
      const size_t i = static_cast<size_t>(s);
      const int32_t need =
          s == t ? slots.leaf_need[i]
                 : std::max(slots.gradient[ti] + slots.saving_need[i], slots.backward_need[i]);
      inner = std::min(s == t ? need : std::max(need, slots.saved[i] + inner), slots.slots + 1);
      const int64_t memory = least.table(s + 1, t + 1).memory;
      live.table_(s + 1, t + 1) = {static_cast<int32_t>(std::min<int64_t>(memory, slots.slots + 1)),
                                   inner};
    }
  }
  return live;
}

absl::Status CheckTableSize(int64_t stages, int64_t slots, int64_t bytes,
                            const SolveContext& context) {
  if (bytes <= context.memory().value()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a table of ", slots, " slots for ", stages,
                                                   " stages takes ", bytes, " bytes; the limit is ",
                                                   context.memory().value()));
}

absl::Status NoMemoryForTable(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the machine has no memory left for a table of ", bytes, " bytes"));
}

namespace {

// The engine for chains whose stages repeat: one row of memory slots per distinct interval, from the
// minimum memory of the interval to the one at which all of it is kept.

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
    if (m < range.begin) return kInfinity;
    if (m >= range.end) return 0;
    const T value = values_[static_cast<size_t>(range.at + m - range.begin)];
    return value < kInfinityAs<T> ? static_cast<int64_t>(value) : kInfinity;
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

  absl::Status Run(const SolveContext& context) const {
    StopPoll poll(context.stop());
    const int stages = slots_.stages;
    for (int s = stages - 1; s >= 0; --s) {
      const StageRepeat repeat = input_.repeats[static_cast<size_t>(s) + 1];
      for (int t = s + repeat.length; t < stages; ++t) {
        absl::Status status = poll.Spend(ComputeRow(s, t));
        if (!status.ok()) return status;
      }
      context.Report(static_cast<double>(stages - s) / stages);
    }
    return absl::OkStatus();
  }

 private:
  // Returns the number of steps.
  int64_t ComputeRow(int s, int t) const {
    const RowRange& row = rows_.Range(s, t);
    if (row.begin >= row.end) return 1;
    std::fill(rows_.At(row, row.begin), rows_.At(row, row.end), kInfinityAs<T>);
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
    return static_cast<T>(input_.until[static_cast<size_t>(split)] -
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

template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows(const EngineInput& input,
                                                              const MinPlusKernels& kernels,
                                                              const SolveContext& context) {
  const PersistentSlots& slots = input.slots;
  const int64_t beside = input.bytes_beside + Rows<T>::IndexBytes(input);
  absl::Status status = CheckTableSize(slots.stages, slots.slots, beside, context);
  if (!status.ok()) return status;
  auto rows = std::make_unique<Rows<T>>(input);
  StopPoll poll(context.stop());
  status = rows->Number(input, &poll);
  if (!status.ok()) return status;
  status = CheckTableSize(slots.stages, slots.slots, beside + rows->bytes(), context);
  if (!status.ok()) return status;
  if (!rows->Allocate()) return NoMemoryForTable(rows->bytes());
  status = RowSolver<T>(input, KernelFor<T>(kernels), rows.get()).Run(context);
  if (!status.ok()) return status;
  return std::unique_ptr<PersistentEngine>(std::move(rows));
}

// What the engines take for an interval, in steps of a vector, as measured: a split of a row is
// dearer than one of a tile, but tiles take longer to set up.
double RowSteps(int64_t intervals, int64_t splits) {
  return 4.0 * static_cast<double>(splits) + 10.0 * static_cast<double>(intervals);
}
double TileSteps(int64_t intervals, int64_t splits) {
  return static_cast<double>(splits) + 24.0 * static_cast<double>(intervals);
}

bool RowsAreFaster(const std::vector<StageRepeat>& repeats) {
  const int64_t last = static_cast<int64_t>(repeats.size()) - 1;
  int64_t all = 0, distinct = 0;  // splits
  const auto up_to = [](int64_t length) { return length * (length + 1) / 2; };
  for (int64_t s = 1; s <= last; ++s) {
    const int64_t splits = up_to(last - s + 1);
    all += splits;
    distinct += splits - up_to(repeats[static_cast<size_t>(s)].length);
  }
  return RowSteps(DistinctIntervals(repeats), distinct) < TileSteps(up_to(last), all);
}

// What is held while a table is computed, beside the values.
int64_t SetUpBytes(int64_t stages) {
  return IntervalTable<MinimumMemory::Entry>::SizeBytes(stages) +
         PersistentSlots::SizeBytes(stages) + LiveSlots::SizeBytes(stages);
}

}  // namespace

PersistentTable::PersistentTable(const PersistentSpace& space) : space_(space) {
  int64_t unit = 0;
  for (int s = 1; s <= space.last(); ++s) {
    unit = std::gcd(std::gcd(unit, space.ForwardTime(s, s)), space.StopGain(s));
  }
  time_unit_ = std::max<int64_t>(unit, 1);
  for (int s = 0; s <= space.last(); ++s) {
    forward_.push_back(space.ForwardTime(1, s) / time_unit_);
    until_.push_back(space.RecomputeTime(1, s) / time_unit_);
  }
}

PersistentTable::PersistentTable(PersistentTable&&) noexcept = default;
PersistentTable& PersistentTable::operator=(PersistentTable&&) noexcept = default;
PersistentTable::~PersistentTable() = default;

absl::StatusOr<PersistentTable> PersistentTable::Compute(const PersistentSpace& space,
                                                         int64_t slots, const SolveContext& context,
                                                         const TableTuning& tuning) {
  if (slots < 0 || slots > PersistentSlots::kMaxSlots) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a table has 0 to ", PersistentSlots::kMaxSlots, " slots, not ", slots));
  }
  const absl::StatusOr<MinimumMemory> least =
      ComputeMinimumMemory(space, context, /*with_splits=*/false);
  if (!least.ok()) return least.status();
  PersistentTable table(space);
  const int64_t total = table.forward_.back();
  absl::StatusOr<int64_t> left = slots;  // the most memory that has no value yet
  if (tuning.value == TableTuning::Value::kBest && FitsValues<int32_t>(total))
    left = table.Extend<int32_t>(*least, *left, context, tuning);
  if (left.ok() && *left >= 0 && tuning.value != TableTuning::Value::kWide &&
      FitsValues<double>(total)) {
    left = table.Extend<double>(*least, *left, context, tuning);
  }
  if (left.ok() && *left >= 0) left = table.Extend<int64_t>(*least, *left, context, tuning);
  if (!left.ok()) return left.status();
  return table;
}

// Adds a part for memories up to `slots`. Returns the most memory that runs the chain and is beyond
// T, or -1.
template <class T>
absl::StatusOr<int64_t> PersistentTable::Extend(const MinimumMemory& least, int64_t slots,
                                                const SolveContext& context,
                                                const TableTuning& tuning) {
  const int64_t beside = SetUpBytes(space_.last()) + bytes();
  absl::Status status = CheckTableSize(space_.last(), slots, beside, context);
  if (!status.ok()) return status;
  const PersistentSlots in_slots(space_, slots);
  StopPoll poll(context.stop());
  const absl::StatusOr<LiveSlots> live = LiveSlots::Compute(in_slots, least, &poll);
  if (!live.ok()) return live.status();
  const std::vector<StageRepeat> repeats = FindStageRepeats(space_);
  const EngineInput input{in_slots, *live, repeats, forward_, until_, beside};
  const MinPlusKernels& kernels = tuning.kernels != nullptr ? *tuning.kernels : BestKernels();
  const bool rows = tuning.engine == TableTuning::Engine::kBest
                        ? RowsAreFaster(repeats)
                        : tuning.engine == TableTuning::Engine::kRows;
  absl::StatusOr<std::unique_ptr<PersistentEngine>> engine =
      rows ? ComputeRows<T>(input, kernels, context) : ComputeTiles<T>(input, kernels, context);
  if (!engine.ok()) return engine.status();
  parts_.push_back({slots, std::move(*engine)});

  int64_t memory = space_.activation(0) + least.table(1, space_.last()).memory;
  int64_t beyond = -1;
  for (; memory <= slots && Overhead(memory) >= kInfinity; ++memory) beyond = memory;
  return beyond;
}

int64_t PersistentTable::bytes() const {
  int64_t sum = 0;
  for (const Part& part : parts_) sum += part.engine->bytes();
  return sum;
}

const PersistentEngine& PersistentTable::EngineFor(int64_t memory) const {
  size_t part = parts_.size() - 1;
  while (part > 0 && parts_[part].slots < memory) --part;
  return *parts_[part].engine;
}

int64_t PersistentTable::Overhead(int64_t memory) const {
  const int64_t inner = memory - space_.activation(0);
  if (inner < 0) return kInfinity;
  const int64_t value = EngineFor(memory).Value(0, space_.last() - 1, inner);
  return value < kInfinity ? value * time_unit_ : kInfinity;
}

int64_t PersistentTable::IntervalOverhead(int s, int t, int64_t memory) const {
  for (const Part& part : parts_) {
    const int64_t m = std::min(memory, part.slots - space_.activation(s - 1));
    const int64_t value = m < 0 ? kInfinity : part.engine->Value(s - 1, t - 1, m);
    if (value < kInfinity) return value * time_unit_;
  }
  return kInfinity;
}

int PersistentTable::Choose(const PersistentEngine& engine, int s, int t, int64_t m) const {
  // The engine counts stages from 0.
  const int64_t value = engine.Value(s - 1, t - 1, m);
  if (m >= std::max(space_.KeepAllNeed(s, t), space_.saved(s)) &&
      engine.Value(s, t - 1, m - space_.saved(s)) == value) {
    return 0;
  }
  int64_t run_need = space_.FirstRunNeed(s);
  for (int split = s + 1; split <= t; ++split) {
    if (split > s + 1) run_need = space_.ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_.activation(split - 1);
    if (m < space_.gradient(t) + run_need) break;  // the need grows with the split
    if (m < kept) continue;
    const int64_t run =
        until_[static_cast<size_t>(split - 1)] - forward_[static_cast<size_t>(s - 1)];
    if (run + engine.Value(split - 1, t - 1, m - kept) + engine.Value(s - 1, split - 2, m) == value)
      return split;
  }
  return 0;
}

Schedule PersistentTable::Backtrack(int64_t memory) const {
  const PersistentEngine& engine = EngineFor(memory);
  return PersistentBacktrack::Run(
      space_, memory - space_.activation(0),
      [this, &engine](int s, int t, int64_t m) { return Choose(engine, s, t, m); });
}

TableEstimate PersistentTable::Estimate(const PersistentSpace& space, int64_t slots) {
  const std::vector<StageRepeat> repeats = FindStageRepeats(space);
  const bool rows = RowsAreFaster(repeats);
  const bool narrow = FitsValues<int32_t>(PersistentTable(space).forward_.back());
  const int64_t lanes = narrow ? kLanes<int32_t> : kLanes<double>;
  const auto cut = [slots](int64_t size) { return std::min(size, slots + 1); };
  // The right sides of the tiles of two chunks, or the numbers of the rows.
  int64_t values = int64_t{space.last()} * space.last() * (rows ? 1 : lanes);
  double steps = 0;
  for (int t = 1; t <= space.last(); ++t) {
    int64_t all_kept = 0, least = 0;
    for (int s = t; s >= 1; --s) {
      all_kept = s == t ? cut(space.KeepAllNeed(s, t))
                        : cut(std::max(space.KeepAllNeed(s, t), cut(space.saved(s)) + all_kept));
      least = std::max(least, cut(std::min(space.BackwardNeed(s), space.KeepAllNeed(s, s))));
      if (rows && t - s + 1 <= repeats[static_cast<size_t>(s)].length) continue;
      const int64_t live = std::max<int64_t>(all_kept - least, 0);
      // Tiles and chunks are kept whole.
      values += rows || live == 0 ? live : live + 3 * lanes;
      const double vectors = static_cast<double>(live) / static_cast<double>(lanes) + 1;
      steps += vectors * (rows ? RowSteps(1, t - s) : TileSteps(1, t - s));
    }
  }
  const int64_t index_bytes = rows ? 0 : TileIndexBytes(space.last(), slots, lanes);
  return {SetUpBytes(space.last()) + index_bytes + values * kChunkBytes / lanes, steps};
}

namespace {

class RoundingAwareChoices {
 public:
  RoundingAwareChoices(const PersistentSpace& exact, const MinimumMemory& least,
                       const PersistentTable& table, int64_t unit)
      : exact_(exact), least_(least), table_(table), unit_(unit) {}

  int Choose(int s, int t, int64_t memory) const {
    int best_split = 0;
    int64_t best = kInfinity;
    if (memory >= exact_.KeepAllNeed(s, t) && Fits(s + 1, t, memory - exact_.saved(s))) {
      best = Estimate(s + 1, t, memory - exact_.saved(s));
    }
    int64_t run_need = exact_.FirstRunNeed(s);
    for (int split = s + 1; split <= t && exact_.Recomputable(s, split - 1); ++split) {
      if (split > s + 1) run_need = exact_.ExtendRunNeed(run_need, split - 1);
      if (memory < exact_.gradient(t) + run_need) break;  // the need grows with the split
      const int64_t run = exact_.RecomputeTime(s, split - 1);
      if (run >= best) break;  // so does the time
      const int64_t rest = memory - exact_.activation(split - 1);
      if (!Fits(split, t, rest) || !Fits(s, split - 1, memory)) continue;
      const int64_t total = run + Estimate(split, t, rest) + Estimate(s, split - 1, memory);
      if (total < best) {
        best = total;
        best_split = split;
      }
    }
    return best_split;
  }

 private:
  // Beyond every overhead of a table, and some of them still fit 64 bits.
  static constexpr int64_t kUnknown = kInfinity / 4;

  bool Fits(int s, int t, int64_t memory) const { return memory >= least_.table(s, t).memory; }

  // What the table says, or nearly: it may need a little more than is there.
  int64_t Estimate(int s, int t, int64_t memory) const {
    constexpr int64_t kMore = 8;
    const int64_t slots = memory / unit_ + (memory % unit_ >= unit_ - memory % unit_ ? 1 : 0);
    for (int64_t more = 0; more <= kMore; ++more) {
      const int64_t overhead = table_.IntervalOverhead(s, t, slots + more);
      if (overhead < kInfinity) return overhead;
    }
    return kUnknown;
  }

  const PersistentSpace& exact_;
  const MinimumMemory& least_;
  const PersistentTable& table_;
  const int64_t unit_;
};

}  // namespace

Schedule RoundingAwareSchedule(const PersistentSpace& exact, const MinimumMemory& least,
                               const PersistentTable& table, int64_t unit, int64_t memory) {
  return RoundingAwareSchedule(exact, least, table, unit, 1, exact.last(), memory);
}

Schedule RoundingAwareSchedule(const PersistentSpace& exact, const MinimumMemory& least,
                               const PersistentTable& table, int64_t unit, int s, int t,
                               int64_t memory) {
  const RoundingAwareChoices choices(exact, least, table, unit);
  return PersistentBacktrack::Run(exact, s, t, memory, [&choices](int first, int last, int64_t m) {
    return choices.Choose(first, last, m);
  });
}

}  // namespace stowage
