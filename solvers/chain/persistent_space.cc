#include "solvers/chain/persistent_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/min_plus_dispatch.h"

namespace stowage {

PersistentSpace::PersistentSpace(const Chain& chain, int64_t unit, Rounding rounding)
    : last_(chain.length() + 1) {
  const auto slots = [unit, rounding](Bytes size) {
    const int64_t rest = size.value() % unit;
    const bool up = rounding == Rounding::kUp ? rest != 0 : rest >= unit - rest;
    return size.value() / unit + (up ? 1 : 0);
  };
  const size_t count = static_cast<size_t>(last_) + 1;
  for (std::vector<int64_t>* v :
       {&activation_, &saved_, &gradient_, &saving_overhead_, &plain_overhead_, &backward_overhead_,
        &stopped_need_, &stop_gain_, &forward_prefix_, &kept_prefix_}) {
    v->resize(count);
  }
  activation_[0] = slots(chain.activation(0));
  gradient_[0] = slots(chain.gradient(0));
  Bytes saved_so_far;
  for (int l = 1; l <= last_; ++l) {
    const Stage& stage = chain.stage(l);
    const size_t i = static_cast<size_t>(l);
    activation_[i] = slots(stage.output);
    saved_[i] = slots(stage.saved);
    if (rounding == Rounding::kCumulative) {
      saved_[i] = slots(saved_so_far + stage.saved) - slots(saved_so_far);
      saved_so_far += stage.saved;
    }
    gradient_[i] = slots(stage.output_gradient);
    saving_overhead_[i] = slots(stage.forward_saving_overhead);
    plain_overhead_[i] = slots(stage.forward_overhead);
    backward_overhead_[i] = slots(stage.backward_overhead);
    stopped_need_[i] = gradient_[i] + slots(stage.stopped_saved()) +
                       std::max(slots(stage.stopped_overhead()), backward_overhead_[i]);
    stop_gain_[i] = (stage.forward_time - stage.stopped_time()).value();
    forward_prefix_[i] = forward_prefix_[i - 1] + stage.forward_time.value();
    kept_prefix_[i] = kept_prefix_[i - 1] + (stage.recomputable() ? 0 : 1);
  }
}

std::array<int64_t, 10> PersistentSpace::StageKey(int s) const {
  return {ForwardTime(s, s),
          Recomputable(s, s) ? 1 : 0,
          activation(s),
          saved(s),
          gradient(s),
          at(saving_overhead_, s),
          at(plain_overhead_, s),
          at(backward_overhead_, s),
          at(stopped_need_, s),
          StopGain(s)};
}

int64_t PersistentSpace::FirstRunNeed(int s) const {
  return activation(s) + at(plain_overhead_, s);
}

int64_t PersistentSpace::ExtendRunNeed(int64_t need, int stage) const {
  return std::max(need, activation(stage - 1) + activation(stage) + at(plain_overhead_, stage));
}

int64_t CommonUnit(const Chain& chain) {
  int64_t unit = std::gcd(chain.activation(0).value(), chain.gradient(0).value());
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    for (const Bytes size : {s.output, s.saved, s.output_gradient, s.forward_saving_overhead,
                             s.forward_overhead, s.backward_overhead, s.stopped_overhead()}) {
      unit = std::gcd(unit, size.value());
    }
  }
  return std::max<int64_t>(unit, 1);
}

int64_t LeastBudgetOf(const PersistentSpace& space, const MinimumMemory& least) {
  // Beside the recurrence: delta^0 alone is left at the end.
  return std::max(space.activation(0) + least.table(1, space.last()).memory,
                  space.input_gradient());
}

namespace {

// Numbers equal stages alike.
std::vector<int> ClassesOf(const PersistentSpace& space) {
  std::vector<int> classes(static_cast<size_t>(space.last()) + 1);
  std::map<std::array<int64_t, 10>, int> numbers;
  for (int s = 1; s <= space.last(); ++s) {
    const int next = static_cast<int>(numbers.size());
    classes[static_cast<size_t>(s)] = numbers.insert({space.StageKey(s), next}).first->second;
  }
  return classes;
}

}  // namespace

std::vector<StageRepeat> FindStageRepeats(const PersistentSpace& space) {
  const size_t last = static_cast<size_t>(space.last());
  const std::vector<int> classes = ClassesOf(space);
  std::vector<StageRepeat> repeats(last + 1);
  // common[u]: how many stages from s and from u on are the same. Falls back to those from s + 1.
  std::vector<int> common(last + 2, 0);
  for (size_t s = last; s >= 1; --s) {
    for (size_t u = s + 1; u <= last; ++u) {
      common[u] = classes[s] == classes[u] ? 1 + common[u + 1] : 0;
      if (common[u] > repeats[s].length) repeats[s] = {static_cast<int>(u), common[u]};
    }
  }
  return repeats;
}

int64_t DistinctIntervals(const std::vector<StageRepeat>& repeats) {
  int64_t distinct = 0;
  const int64_t last = static_cast<int64_t>(repeats.size()) - 1;
  for (int64_t s = 1; s <= last; ++s)
    distinct += last - s + 1 - repeats[static_cast<size_t>(s)].length;
  return distinct;
}

// ComputeMinimumMemory of persistent_space.h.
//
// s downwards, t upwards, the splits of one interval by vector instructions. What repeats a later
// interval is copied.

namespace {

// Sums below it are exact as double.
constexpr double kMaxReal = 4503599627370496.0;

// Splits whose least is found before the best one is looked for.
constexpr int64_t kBlock = 64;

// T holds every sum of sizes exactly.
template <class T>
class MinimumMemoryBuilder {
 public:
  MinimumMemoryBuilder(const PersistentSpace& space, const MinPlusKernel<T>& kernel,
                       const std::vector<StageRepeat>& repeats, bool with_splits)
      : with_splits_(with_splits),
        space_(space),
        kernel_(kernel),
        last_(space.last()),
        repeats_(repeats) {}

  static int64_t ScratchBytes(int64_t last) {
    return last * (last + 1) / 2 * static_cast<int64_t>(sizeof(T));
  }

  absl::Status Build(const SolveContext& context, MinimumMemory* least) {
    const size_t count = static_cast<size_t>(last_) + 2;
    inner_ = NewAlignedArray<T>(Column(last_ + 1));
    if (inner_ == nullptr) return absl::ResourceExhaustedError("out of memory: least memory");
    run_need_.resize(count);
    row_.resize(count);
    StopPoll poll(context.stop());
    for (int s = last_; s >= 1; --s) {
      FillRunNeed(s);
      const StageRepeat repeat = repeats_[static_cast<size_t>(s)];
      for (int t = s; t <= last_; ++t) {
        const int length = t - s + 1;
        const bool repeated = length <= repeat.length;
        absl::Status status = poll.Spend(repeated ? 8 : 16 + length);
        if (!status.ok()) return status;
        MinimumMemory::Entry& entry = least->table(s, t);
        if (repeated) {
          entry = least->table(repeat.stage, repeat.stage + length - 1);
          if (entry.split > 0) entry.split -= repeat.stage - s;
        } else {
          entry = Best(*least, s, t);
        }
        row_[static_cast<size_t>(t)] = static_cast<T>(entry.memory);
        inner_[static_cast<size_t>(Column(t) + s - 1)] =
            static_cast<T>(space_.activation(s - 1) + entry.memory);
      }
    }
    return absl::OkStatus();
  }

 private:
  // Column t of inner_ holds a^{s-1} + least(s, t) for s = 1..t.
  static int64_t Column(int64_t t) { return t * (t - 1) / 2; }

  // The part of m_0(s, s', t) without delta^t, for the splits s' that are allowed at all.
  void FillRunNeed(int s) {
    int64_t need = space_.FirstRunNeed(s);
    split_end_ = s + 1;
    while (split_end_ <= last_ && space_.Recomputable(s, split_end_ - 1)) {
      if (split_end_ > s + 1) need = space_.ExtendRunNeed(need, split_end_ - 1);
      run_need_[static_cast<size_t>(split_end_++)] = static_cast<T>(need);
    }
  }

  // The first split in [begin, end) that needs `limit` or more: the need grows with the split.
  int64_t EndOfNeed(int begin, int end, T limit) const {
    const T* need = run_need_.data();
    if (begin >= end || need[end - 1] < limit) return std::max(begin, end);
    return std::lower_bound(need + begin, need + end, limit) - need;
  }

  MinimumMemory::Entry Best(const MinimumMemory& least, int s, int t) const {
    MinimumMemory::Entry best;
    best.memory = space_.KeepAllNeed(s, t);
    if (s == t) return best;
    best.memory = std::max(best.memory, space_.saved(s) + least.table(s + 1, t).memory);
    const T keep = static_cast<T>(best.memory);
    const T gradient = static_cast<T>(space_.gradient(t));
    const T* need = run_need_.data();
    const int64_t end = EndOfNeed(s + 1, std::min(split_end_, t + 1), keep - gradient);
    const T* inner = inner_.get() + Column(t) - 1;
    T value = keep;
    int64_t split = 0;  // first in the first block that attains the value
    for (int64_t block = s + 1; block < end; block += kBlock) {
      const T least_of_block =
          kernel_.min_max(value, need + block, gradient, row_.data() + block - 1, inner + block,
                          std::min(kBlock, end - block));
      if (least_of_block < value) split = block;
      value = least_of_block;
    }
    best.memory = static_cast<int64_t>(value);
    if (split == 0 || !with_splits_) return best;
    while (std::max({need[split] + gradient, row_[static_cast<size_t>(split - 1)], inner[split]}) >
           value) {
      ++split;
    }
    best.split = static_cast<int32_t>(split);
    return best;
  }

  const bool with_splits_;
  const PersistentSpace& space_;
  const MinPlusKernel<T>& kernel_;
  const int last_;
  const std::vector<StageRepeat>& repeats_;
  AlignedArray<T> inner_;
  std::vector<T> run_need_;  // of row s, by split
  std::vector<T> row_;       // least(s, t) of row s, by t
  int split_end_ = 0;
};

// No sum of sizes in the recurrence is larger.
double LargestSum(const PersistentSpace& space) {
  double sum = static_cast<double>(space.activation(0));
  for (int s = 1; s <= space.last(); ++s) {
    sum += static_cast<double>(space.SavingNeed(s)) + static_cast<double>(space.BackwardNeed(s)) +
           static_cast<double>(space.FirstRunNeed(s)) + static_cast<double>(space.activation(s));
  }
  return 2 * sum;
}

}  // namespace

absl::StatusOr<MinimumMemory> ComputeMinimumMemory(const PersistentSpace& space,
                                                   const SolveContext& context, bool with_splits) {
  const int64_t last = space.last();
  if (last > kMaxIntervalStages + 1) {
    return absl::ResourceExhaustedError(absl::StrCat("the least memory of ", last - 1,
                                                     " stages: the limit is ", kMaxIntervalStages));
  }
  const int64_t bytes = IntervalTable<MinimumMemory::Entry>::SizeBytes(last) +
                        MinimumMemoryBuilder<int64_t>::ScratchBytes(last);
  if (bytes > context.memory().value()) {
    return absl::ResourceExhaustedError(absl::StrCat("the least memory of ", last, " stages takes ",
                                                     bytes, " bytes; the limit is ",
                                                     context.memory().value()));
  }
  const std::vector<StageRepeat> repeats = FindStageRepeats(space);
  MinimumMemory least{IntervalTable<MinimumMemory::Entry>(static_cast<int>(last))};
  absl::Status status =
      LargestSum(space) < kMaxReal
          ? MinimumMemoryBuilder<double>(space, BestKernels().real, repeats, with_splits)
                .Build(context, &least)
          : MinimumMemoryBuilder<int64_t>(space, BestKernels().wide, repeats, with_splits)
                .Build(context, &least);
  if (!status.ok()) return status;
  return least;
}

}  // namespace stowage
