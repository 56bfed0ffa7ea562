#include "solvers/transfer/internal/segment_costs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"

namespace stowage {

SegmentOption SegmentReplay::Run(int i, int j, bool saved, const Schedule& schedule) {
  steps_.clear();
  stopped_ = 0;
  held_ = (chain_.gradient(j) + (saved ? chain_.stage(j).saved : Bytes(0))).value();
  int64_t time = 0;
  int64_t ideal = 0;
  for (int l = i; l <= j; ++l) ideal += Time(l, false) + (l < j ? Time(l, true) : 0);
  if (!saved) ideal += chain_.stage(j).stopped_time().value();
  SegmentOption option;
  for (size_t k = 0; k < schedule.size(); ++k) {
    const Instruction& instruction = schedule[k];
    const Stage& stage = chain_.stage(instruction.stage);
    stops_ = instruction.op == Op::kForwardSave && stage.stops() &&
             WhatFollows(schedule, k) != AfterSaving::kOther;
    const int64_t need = Step(i, instruction);
    time += stops_ ? stage.stopped_time().value()
                   : Time(instruction.stage, instruction.op != Op::kBackward);
    steps_.push_back({need, time});
    option.need = std::max(option.need, need);
  }
  option.overhead = static_cast<double>(time - ideal);
  for (const auto& [need, end] : steps_) {
    const double lead = static_cast<double>(time - end);
    option.rush = std::max(option.rush, per_byte_ * static_cast<double>(need) - lead);
  }
  return option;
}

int64_t SegmentReplay::Step(int i, const Instruction& instruction) {
  const int l = instruction.stage;
  const Stage& stage = chain_.stage(l);
  if (instruction.op == Op::kBackward) {
    const int64_t running = held_ + stage.backward_overhead.value();
    held_ += chain_.gradient(l - 1).value() - chain_.gradient(l).value();
    held_ -= (stopped_ == l ? stage.stopped_saved() : stage.saved).value();
    if (l > i && plain_[static_cast<size_t>(l)]) {
      held_ -= chain_.activation(l - 1).value();
      plain_[static_cast<size_t>(l)] = false;
    }
    return std::max(running, held_);
  }
  const bool saving = instruction.op == Op::kForwardSave;
  if (stops_) stopped_ = l;
  const Bytes made = !saving ? stage.output : stops_ ? stage.stopped_saved() : stage.saved;
  const Bytes overhead = !saving  ? stage.forward_overhead
                         : stops_ ? stage.stopped_overhead()
                                  : stage.forward_saving_overhead;
  const int64_t running = held_ + (made + overhead).value();
  held_ += made.value();
  if (!saving) plain_[static_cast<size_t>(l) + 1] = true;
  if (instruction.op == Op::kForwardNoSaveFreeInput) {
    held_ -= chain_.activation(l - 1).value();
    plain_[static_cast<size_t>(l)] = false;
  }
  return running;
}

namespace {

// Work of the table and of the options: up to a second each.
constexpr double kTableSteps = 1e9;
constexpr double kOptionSteps = 1e8;
constexpr int64_t kMostSlots = 1000;
constexpr int64_t kFewestSlots = 32;
constexpr int64_t kMostStages = 1000;
constexpr double kMostOptions = 16;
constexpr double kFewestOptions = 3;

// A schedule takes some steps for each pair of its stages.
double OptionWork(double stages, double longest) {
  return stages * longest * longest * longest / 6;
}

// So short that the fewest options are within the work.
int LongestSegment(int stages) {
  int longest = stages;
  while (longest > 1 && OptionWork(stages, longest) * kFewestOptions > kOptionSteps) --longest;
  return longest;
}

// Of one interval of each kind: so that the work is bounded.
size_t MostOptions(const PersistentSpace& space, int longest) {
  const double last = space.last();
  const double share =
      static_cast<double>(DistinctIntervals(FindStageRepeats(space))) / last / last * 2;
  const double work = std::max(OptionWork(last, longest) * share, 1.0);
  return static_cast<size_t>(std::clamp(kOptionSteps / work, kFewestOptions, kMostOptions));
}

// Intervals of `longest` stages at most, of both kinds.
size_t OptionLists(int last, int longest) {
  const auto n = static_cast<size_t>(last), most = static_cast<size_t>(longest);
  return 2 * (n * most - most * (most - 1) / 2);
}

// As many slots as the work and the memory allow; 0 if that is too few.
int64_t AffordableSlots(const Chain& chain, int64_t memory, int64_t bytes) {
  for (int64_t slots = kMostSlots; slots >= kFewestSlots; slots = slots * 3 / 4) {
    const int64_t unit = std::max<int64_t>(memory / slots, 1);
    const TableEstimate estimate = PersistentTable::Estimate(
        PersistentSpace(chain, unit, Rounding::kNearest), memory / unit + 1);
    if (estimate.steps <= kTableSteps && estimate.bytes <= bytes) return slots;
  }
  return 0;
}

// How many stages from i on are repeated from `repeat` on in their backward times, too.
int RepeatLength(const Chain& chain, int i, const StageRepeat& repeat) {
  int length = 0;
  while (length < repeat.length && chain.stage(i + length).backward_time ==
                                       chain.stage(repeat.stage + length).backward_time) {
    ++length;
  }
  return length;
}

// Leaves the options that are of use: see OptionsOf.
void Prune(std::vector<SegmentOption>* context) {
  std::stable_sort(
      context->begin(), context->end(), [](const SegmentOption& a, const SegmentOption& b) {
        return a.overhead < b.overhead || (a.overhead == b.overhead && a.need < b.need);
      });
  std::vector<SegmentOption> kept;
  for (const SegmentOption& option : *context) {
    if (!kept.empty() &&
        (option.overhead == kept.back().overhead || option.need >= kept.back().need)) {
      continue;
    }
    kept.push_back(option);
  }
  *context = std::move(kept);
}

}  // namespace

absl::StatusOr<std::optional<SegmentCosts>> SegmentCosts::Compute(const Chain& chain,
                                                                  const TransferModel& transfers,
                                                                  Bytes memory,
                                                                  const SolveContext& context) {
  std::optional<SegmentCosts> none;
  if (chain.length() > kMostStages) return none;
  const PersistentSpace exact(chain, 1);
  const int longest = LongestSegment(chain.length());
  const size_t most = MostOptions(exact, longest);
  const auto option_bytes =
      static_cast<int64_t>(OptionLists(exact.last(), longest) * most * sizeof(SegmentOption));
  const SolveContext within = context.Quiet().WithMemory(Bytes(
      context.memory().value() / 2 - IntervalTable<MinimumMemory::Entry>::SizeBytes(exact.last()) -
      2 * IntervalTable<Span>::SizeBytes(exact.last()) - option_bytes));
  const int64_t slots = AffordableSlots(chain, memory.value(), within.memory().value());
  if (slots == 0) return none;
  absl::StatusOr<MinimumMemory> least = ComputeMinimumMemory(exact, within);
  if (absl::IsResourceExhausted(least.status())) return none;
  if (!least.ok()) return least.status();
  SegmentCosts costs(chain, std::max<int64_t>(memory.value() / slots, 1), longest,
                     *std::move(least));
  const PersistentSpace in_slots(chain, costs.unit_, Rounding::kNearest);
  const int64_t table_slots = memory.value() / costs.unit_ + 1;
  absl::StatusOr<PersistentTable> table = PersistentTable::Compute(in_slots, table_slots, within);
  if (absl::IsResourceExhausted(table.status())) return none;
  if (!table.ok()) return table.status();
  costs.table_.emplace(*std::move(table));
  const double per_byte = 1e9 / static_cast<double>(transfers.to_device.bytes_per_second);
  absl::Status status = costs.FillOptions(chain, per_byte, table_slots, most, context);
  if (!status.ok()) return status;
  return std::optional<SegmentCosts>(std::move(costs));
}

int64_t SegmentCosts::bytes() const {
  return IntervalTable<MinimumMemory::Entry>::SizeBytes(last()) +
         2 * IntervalTable<Span>::SizeBytes(last()) +
         static_cast<int64_t>(options_.capacity() * sizeof(SegmentOption)) + table_->bytes();
}

SegmentCosts::SegmentCosts(const Chain& chain, int64_t unit, int longest, MinimumMemory least)
    : space_(chain, 1),
      unit_(unit),
      longest_(longest),
      least_(std::move(least)),
      spans_{IntervalTable<Span>(space_.last()), IntervalTable<Span>(space_.last())} {}

absl::Status SegmentCosts::FillOptions(const Chain& chain, double per_byte, int64_t slots,
                                       size_t most, const SolveContext& context) {
  StopPoll poll(context.stop());
  options_.reserve(OptionLists(last(), longest_) * most);
  const std::vector<StageRepeat> repeats = FindStageRepeats(space_);
  SegmentReplay replay(chain, per_byte);
  for (int i = last() - 1; i >= 1; --i) {
    const int repeated = repeats[static_cast<size_t>(i)].stage;
    const int length = RepeatLength(chain, i, repeats[static_cast<size_t>(i)]);
    for (int j = i; MayRunTwice(i, j); ++j) {
      // Those of the stage after the interval, too: it may be saved.
      if (j + 1 - i < length && MayRunTwice(repeated, repeated + j - i)) {
        spans_[0](i, j) = spans_[0](repeated, repeated + j - i);
        spans_[1](i, j + 1) = spans_[1](repeated, repeated + j + 1 - i);
        continue;
      }
      const std::vector<int64_t> memories = MemoriesOf(i, j, slots, most);
      absl::Status status = AddOptions(i, j, false, memories, &replay, &poll);
      if (status.ok() && j + 1 < last()) {
        status = AddOptions(i, j + 1, true, memories, &replay, &poll);
      }
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SegmentCosts::AddOptions(int i, int j, bool saved,
                                      const std::vector<int64_t>& memories, SegmentReplay* replay,
                                      StopPoll* poll) {
  std::vector<SegmentOption> found;
  for (const int64_t memory : memories) {
    found.push_back(replay->Run(i, j, saved, SegmentBackward(i, j, saved, Bytes(memory))));
    found.back().memory = memory;
    absl::Status status = poll->Spend(int64_t{16} * (j - i + 1) * (j - i + 1) + 64);
    if (!status.ok()) return status;
  }
  Prune(&found);
  spans_[saved ? 1 : 0](i, j) = {options_.size(), found.size()};
  options_.insert(options_.end(), found.begin(), found.end());
  return absl::OkStatus();
}

std::vector<int64_t> SegmentCosts::MemoriesOf(int i, int j, int64_t slots, size_t most) const {
  const int64_t least = LeastMemoryOf(i, j).value();
  std::vector<int64_t> memories = {least};
  int64_t before = kInfinity;
  for (int64_t slot = least / unit_ + 1; slot <= slots; ++slot) {
    const int64_t overhead = table_->IntervalOverhead(i, j, slot);
    if (overhead >= before) continue;
    before = overhead;
    memories.push_back(slot * unit_);
    if (overhead == 0) break;
  }
  if (memories.size() <= most) return memories;
  std::vector<int64_t> chosen;
  for (size_t k = 0; k < most; ++k)
    chosen.push_back(memories[k * (memories.size() - 1) / (most - 1)]);
  return chosen;
}

Schedule SegmentCosts::SegmentBackward(int i, int j, bool saved, Bytes memory) const {
  const int end = saved ? j - 1 : j;
  Schedule schedule = RoundingAwareSchedule(space_, least_, *table_, unit_, i, end, memory.value());
  if (!saved) return schedule;
  // Before the first backward, what stage j-1 saves is held.
  const auto first = std::find_if(schedule.begin(), schedule.end(),
                                  [](const Instruction& x) { return x.op == Op::kBackward; });
  schedule.insert(first, Backward(j));
  return schedule;
}

}  // namespace stowage
