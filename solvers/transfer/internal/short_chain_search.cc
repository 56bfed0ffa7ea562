#include "solvers/transfer/internal/short_chain_search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"

namespace stowage {
namespace {

constexpr int kMostTensors = 2 * (kShortChain + 1);
constexpr int kPlaceBits = 3;

enum Place : uint64_t { kNowhere, kHeld, kLeaving, kAway, kComing };

// Tensors by number: activation l is 2l, saved l is 2l-1.
constexpr int Activation(int l) { return 2 * l; }
constexpr int Saved(int l) { return 2 * l - 1; }
constexpr bool IsSaved(int tensor) { return tensor % 2 == 1; }
constexpr int StageOf(int tensor) { return (tensor + 1) / 2; }
constexpr TensorKind KindOf(int tensor) {
  return IsSaved(tensor) ? TensorKind::kSaved : TensorKind::kActivation;
}
constexpr uint16_t Bit(int tensor) { return static_cast<uint16_t>(1u << tensor); }
constexpr uint16_t kAllTensors = (1u << kMostTensors) - 1;

// Where every tensor is, and the next backward.
class Whereabouts {
 public:
  Place at(int tensor) const {
    return static_cast<Place>(places_ >> (kPlaceBits * tensor) & ((1u << kPlaceBits) - 1));
  }
  // A tensor that leaves is held until that is waited for.
  bool Readable(int tensor) const { return at(tensor) == kHeld || at(tensor) == kLeaving; }
  bool HasInput(int l) const {
    return Readable(Activation(l - 1)) || (l > 1 && Readable(Saved(l - 1)));
  }
  void Put(int tensor, Place place) { places_ ^= (at(tensor) ^ place) << (kPlaceBits * tensor); }
  uint64_t Key() const {
    return places_ << 5 | static_cast<uint64_t>(gradient) << 1 | (stopped ? 1 : 0);
  }

  int gradient = 0;
  // Saved `gradient` is there without the output: what runs next is its backward.
  bool stopped = false;

 private:
  uint64_t places_ = 0;
};

// Waits and discards, then one instruction that needed them, then waits for what had arrived.
struct Step {
  uint16_t awaited = 0;  // prefetches
  uint16_t left = 0;     // offloads
  uint16_t dropped = 0;
  uint16_t reduced = 0;  // saved tensors of which the output stays
  uint16_t arrived = 0;
  Instruction instruction;
};

struct Label {
  Whereabouts where;
  int64_t now = 0;                              // compute has done all so far
  std::array<int64_t, kMostTensors> ends = {};  // of copies that end after now; others: 0
  int64_t device = 0, host = 0;                 // bytes
  // Of the last forward or backward: a prefetch that would have fitted beside it started before it.
  int64_t peak = 0;
  // Whose offload could not have started earlier.
  uint16_t fresh = 0;
  // The last instruction was a start on the channel of prefetches: these may be in any order.
  bool chained = false;
  int reached = 0;  // the highest stage that has run
  uint32_t before = 0;
  Step step;
};

// What of all that is saved below a stage, and of the input of the step, may be elsewhere when the stage's backward starts:
// to be made again, or to be copied back. Bit 0 is the input, bit l is saved l.
struct Elsewhere {
  uint16_t made_again = 0;
  uint16_t copied = 0;

  bool Within(const Elsewhere& other) const {
    return (made_again & ~other.made_again) == 0 && (copied & ~other.copied) == 0;
  }
};

// A label of a state, with what most often says that it is not the better one.
struct Reached {
  int64_t now;
  uint32_t label;
  uint16_t fresh;
};

// What makes memory free before an instruction.
struct Release {
  int tensor;
  enum Kind { kDiscard, kReduce, kWait } kind;
  int64_t bytes;  // that it makes free while the instruction runs
  int64_t after;  // and after it
};

// What an instruction takes too much, while it runs and after it.
struct Excess {
  int64_t bytes, after;

  bool Gone() const { return bytes <= 0 && after <= 0; }
  Excess Less(const Release& one) const { return {bytes - one.bytes, after - one.after}; }
  Excess More(const Release& one) const { return {bytes + one.bytes, after + one.after}; }
};

class ShortChainSearch {
 public:
  ShortChainSearch(const Instance& instance, Bytes memory, Nanos known, const SolveContext& context)
      : chain_(instance.chain()),
        link_(*instance.link()),
        budget_(memory.value()),
        known_(known.value()),
        poll_(context.stop()),
        most_labels_(static_cast<size_t>(context.memory().value()) / (2 * sizeof(Label))),
        loss_(chain_.length() + 1),
        tensors_(2 * loss_) {
    for (int t = 0; t < tensors_; ++t) {
      const size_t i = static_cast<size_t>(t);
      const Bytes bytes =
          IsSaved(t) ? chain_.stage(StageOf(t)).saved : chain_.activation(StageOf(t));
      bytes_[i] = bytes.value();
      to_host_[i] = CopyTime(link_.to_host, bytes).value();
      to_device_[i] = CopyTime(link_.to_device, bytes).value();
    }
    for (int l = 1; l <= loss_; ++l) {
      const Stage& stage = chain_.stage(l);
      const size_t i = static_cast<size_t>(l);
      forward_[i] = stage.forward_time.value();
      least_forward_[i] =
          (stage.recomputable() ? stage.stopped_time() : stage.forward_time).value();
      backward_[i] = stage.backward_time.value();
    }
    for (int l = 1; l <= loss_; ++l) {
      elsewhere_backward_[static_cast<size_t>(l)] = LeastElsewhereBackward(l);
      elsewhere_forward_[static_cast<size_t>(l)] = LeastElsewhereForward(l);
    }
  }

  absl::StatusOr<ShortChainAnswer> Run() {
    ShortChainAnswer answer;
    Label start;
    start.where.gradient = loss_;
    start.where.Put(Activation(0), kHeld);
    start.device = chain_.gradient(loss_).value() + bytes_[0];
    start.fresh = Bit(Activation(0));
    if (start.device <= budget_) Reach(start);
    while (!open_.empty() && labels_.size() < most_labels_) {
      const size_t index = std::get<3>(open_.top());
      open_.pop();
      if (superseded_[index]) continue;
      absl::Status status = poll_.Spend(2000);
      if (!status.ok()) return status;
      if (labels_[index].where.gradient == 0) {
        answer.schedule = Found(index);
        break;
      }
      Expand(index);
    }
    answer.complete = open_.empty() || answer.schedule.has_value();
    return answer;
  }

 private:
  int64_t Size(int tensor) const { return bytes_[static_cast<size_t>(tensor)]; }
  static int64_t End(const Label& label, int tensor) {
    return label.ends[static_cast<size_t>(tensor)];
  }

  void Expand(size_t index) {
    const Label label = labels_[index];  // a copy: labels_ grows
    from_ = static_cast<uint32_t>(index);
    const int next = label.where.gradient;
    for (int t = 0; t < tensors_; ++t) {
      if (label.where.stopped && StageOf(t) == next) continue;
      StartOffload(label, t);
      StartPrefetch(label, t);
    }
    for (int t = 0; t < tensors_; ++t) {
      if (label.where.at(t) == kComing) WaitThenStartOffload(label, t);
    }
    for (int l = 1; l < next; ++l) StartOffloadOfOutput(label, l);
    RunBackward(label);
    if (label.where.stopped) return;
    StoppedForward(label);
    // What is made for stages above the next backward nothing can use.
    for (int l = 1; l <= next; ++l) {
      if (label.where.at(Saved(l)) == kNowhere) RunForward(label, Saved(l));
      if (l < next && chain_.stage(l).recomputable() && label.where.at(Activation(l)) == kNowhere) {
        RunForward(label, Activation(l));
      }
    }
  }

  // What leaves comes back: an offload without a prefetch can be a discard, in place of its wait.
  void StartOffload(const Label& label, int t) {
    if (label.where.at(t) != kHeld || (label.fresh & Bit(t)) == 0) return;
    if (label.host + Size(t) > link_.host_memory.value()) return;
    Label next = label;
    next.step = Step();
    PutOffload(t, &next);
    Add(next);
  }

  // Of the output alone, which is less to copy than all that is saved with it.
  void StartOffloadOfOutput(const Label& label, int l) {
    const int t = Activation(l);
    if (label.where.at(Saved(l)) != kHeld || (label.fresh & Bit(Saved(l))) == 0) return;
    if (!chain_.stage(l).recomputable() || label.where.at(t) != kNowhere) return;
    if (label.host + Size(t) > link_.host_memory.value()) return;
    Label next = label;
    next.step = Step();
    next.step.reduced = Bit(Saved(l));
    next.device -= Size(Saved(l)) - Size(t);
    next.where.Put(Saved(l), kNowhere);
    PutOffload(t, &next);
    Add(next);
  }

  void PutOffload(int t, Label* next) const {
    next->where.Put(t, kLeaving);
    next->host += Size(t);
    StartCopy(next, t, kLeaving, to_host_[static_cast<size_t>(t)]);
    next->step.instruction = OffloadStart(KindOf(t), StageOf(t));
    // The next on this channel may be any.
    next->fresh = kAllTensors;
    if (!link_.full_duplex) next->chained = true;
  }

  // After a wait that costs time: for the tensor itself, or where the host had no memory before.
  void WaitThenStartOffload(const Label& label, int t) {
    for (int u = 0; u < tensors_; ++u) {
      const bool itself = u == t;
      if (!itself && label.where.at(u) != kHeld) continue;
      if (!itself && label.host + Size(u) <= link_.host_memory.value()) continue;
      if (label.host - Size(t) + Size(u) > link_.host_memory.value()) continue;
      if (label.where.stopped && StageOf(u) == label.where.gradient) continue;
      Label next = label;
      next.step = Step();
      next.step.awaited = Bit(t);
      next.now = std::max(next.now, End(label, t));
      Arrive(t, &next);
      PutOffload(u, &next);
      Add(next);
    }
  }

  void StartPrefetch(const Label& label, int t) {
    if (label.where.at(t) != kAway) return;
    const bool fits = label.device + Size(t) <= budget_;
    if (fits && !label.chained && label.peak + Size(t) <= budget_) return;
    Label start = label;
    start.step = Step();
    Releasing(
        start, {label.device + Size(t) - budget_, 0}, [](const Whereabouts&) { return true; }, 0,
        [&](Label next) {
          next.where.Put(t, kComing);
          next.device += Size(t);
          StartCopy(&next, t, kComing, to_device_[static_cast<size_t>(t)]);
          next.step.instruction = PrefetchStart(KindOf(t), StageOf(t));
          next.chained = true;
          // Starts on channels that know nothing of each other: offloads come first.
          next.fresh = link_.full_duplex ? 0 : kAllTensors;
          Add(next);
        });
  }

  void StartCopy(Label* label, int t, Place direction, int64_t time) const {
    label->ends[static_cast<size_t>(t)] = 0;
    label->ends[static_cast<size_t>(t)] = ChannelFree(*label, direction) + time;
  }

  // When the channel has done what was started. What was waited for has ended.
  int64_t ChannelFree(const Label& label, Place direction) const {
    int64_t free = label.now;
    for (int t = 0; t < tensors_; ++t) {
      const Place place = label.where.at(t);
      const bool copied = place == kLeaving || place == kComing;
      if (!copied || (link_.full_duplex && place != direction)) continue;
      free = std::max(free, End(label, t));
    }
    return free;
  }

  // Makes the tensor from the input of its stage. A forward that drops its input is one that keeps
  // it and a discard.
  void RunForward(const Label& label, int made) {
    const int l = StageOf(made);
    const Stage& stage = chain_.stage(l);
    const Bytes overhead = IsSaved(made) ? stage.forward_saving_overhead : stage.forward_overhead;
    const Instruction instruction = IsSaved(made) ? ForwardSave(l) : ForwardNoSave(l);
    ForEachInput(label, l, [&](const Label& with_input) {
      const int64_t peak = with_input.device + Size(made) + overhead.value();
      // The output of what it saved before needs no forward.
      const uint16_t kept = IsSaved(made) ? 0 : Bit(Saved(l));
      Releasing(
          with_input, {peak - budget_, 0},
          [l](const Whereabouts& where) { return where.HasInput(l); }, kept,
          [&](Label next) {
            next.peak = peak - (with_input.device - next.device);
            next.where.Put(made, kHeld);
            next.device += Size(made);
            next.now += forward_[static_cast<size_t>(l)];
            Ran(instruction, Bit(made), &next);
          });
    });
  }

  // A recompute of the stage whose backward is next, which has run before.
  void StoppedForward(const Label& label) {
    const int l = label.where.gradient;
    const Stage& stage = chain_.stage(l);
    if (!stage.recompute_saving_time || !stage.recomputable()) return;
    // What is saved with its output may be too large for the backward, and small enough without.
    const bool anew = label.where.at(Saved(l)) == kHeld;
    if (!anew && label.where.at(Saved(l)) != kNowhere) return;
    const int64_t made = Size(Saved(l)) - chain_.activation(l).value();
    const int64_t overhead =
        stage.recompute_saving_overhead.value_or(stage.output + stage.forward_saving_overhead)
            .value();
    ForEachInput(label, l, [&](Label with_input) {
      if (anew) {
        with_input.where.Put(Saved(l), kNowhere);
        with_input.device -= Size(Saved(l));
        with_input.step.dropped |= Bit(Saved(l));
      }
      const int64_t peak = with_input.device + made + overhead;
      Releasing(
          with_input, {peak - budget_, 0},
          [l](const Whereabouts& where) { return where.HasInput(l); }, 0,
          [&](Label next) {
            next.peak = peak - (with_input.device - next.device);
            next.where.Put(Saved(l), kHeld);
            next.where.stopped = true;
            next.device += made;
            next.now += stage.recompute_saving_time->value();
            Ran(ForwardSave(l), 0, &next);
          });
    });
  }

  void RunBackward(const Label& label) {
    const int l = label.where.gradient;
    Label ready = label;
    ready.step = Step();
    for (const int t : {Saved(l), Activation(l - 1)}) {
      if (ready.where.at(t) == kComing) Await(t, &ready);
    }
    if (ready.where.HasInput(l)) RunBackwardOf(ready);
    if (l == 1 || ready.where.at(Saved(l - 1)) != kComing) return;
    Await(Saved(l - 1), &ready);
    RunBackwardOf(ready);
  }

  void RunBackwardOf(const Label& ready) {
    const int l = ready.where.gradient;
    const int input = Activation(l - 1);
    const Stage& stage = chain_.stage(l);
    if (ready.where.at(Saved(l)) != kHeld || ready.where.at(input) > kHeld) return;
    const int64_t peak = ready.device + stage.backward_overhead.value();
    int64_t after =
        ready.device - Size(Saved(l)) - chain_.gradient(l).value() + chain_.gradient(l - 1).value();
    if (ready.where.stopped) after += chain_.activation(l).value();
    if (ready.where.at(input) == kHeld) after -= Size(input);
    Releasing(
        ready, {peak - budget_, after - budget_},
        [l](const Whereabouts& where) { return where.HasInput(l); }, Bit(Saved(l)),
        [&](Label next) {
          next.peak = peak - (ready.device - next.device);
          next.device -= Size(Saved(l)) + chain_.gradient(l).value();
          if (next.where.stopped) next.device += chain_.activation(l).value();
          if (next.where.at(input) == kHeld) next.device -= Size(input);
          next.device += chain_.gradient(l - 1).value();
          next.where.Put(Saved(l), kNowhere);
          next.where.Put(input, kNowhere);
          next.where.gradient = l - 1;
          next.where.stopped = false;
          next.now += backward_[static_cast<size_t>(l)];
          Ran(Backward(l), 0, &next);
        });
  }

  void Ran(const Instruction& instruction, uint16_t made, Label* next) {
    next->step.instruction = instruction;
    next->reached = std::max(next->reached, instruction.stage);
    next->fresh = made;
    next->chained = false;
    Add(*next);
  }

  // The label as it is, where the input is there; and once for each copy of it that comes: then another may go.
  template <typename Visit>
  void ForEachInput(const Label& label, int l, Visit visit) const {
    Label with_input = label;
    with_input.step = Step();
    if (label.where.HasInput(l)) visit(with_input);
    for (const int t : {Activation(l - 1), Saved(l - 1)}) {
      if (t < 0 || label.where.at(t) != kComing) continue;
      Label waited = with_input;
      Await(t, &waited);
      visit(waited);
    }
  }

  void Await(int t, Label* label) const {
    label->now = std::max(label->now, End(*label, t));
    label->step.awaited |= Bit(t);
    Arrive(t, label);
  }

  void Arrive(int t, Label* label) const {
    label->where.Put(t, kHeld);
    label->ends[static_cast<size_t>(t)] = 0;
    label->host -= Size(t);
  }

  // Visits the label with as little released as `excess` needs, in every way. What is released leaves `holds` true; nothing of
  // `kept` is discarded.
  template <typename Holds, typename Visit>
  void Releasing(const Label& label, const Excess& excess, Holds holds, uint16_t kept,
                 Visit visit) const {
    if (excess.Gone()) return visit(label);
    const bool backward = (kept & Bit(Saved(label.where.gradient))) != 0;
    std::array<Release, 2 * kMostTensors> may;
    size_t count = 0;
    for (int t = 0; t < tensors_; ++t) {
      // Between a forward that stopped and its backward nothing else is done to their stage.
      if (label.where.stopped && t == Saved(label.where.gradient)) continue;
      if (label.where.at(t) == kLeaving) may[count++] = {t, Release::kWait, Size(t), Size(t)};
      // Without the input the first backward never runs. What a stage that runs once has saved its backward must find.
      if (label.where.at(t) != kHeld || t == Activation(0) || (kept & Bit(t)) != 0) continue;
      if (IsSaved(t) && !chain_.stage(StageOf(t)).recomputable()) continue;
      // The plain input of a backward goes with it.
      const bool input = backward && t == Activation(label.where.gradient - 1);
      may[count++] = {t, Release::kDiscard, Size(t), input ? 0 : Size(t)};
      if (LeavesOutput(label, t)) may[count++] = Reduced(label, t, backward);
    }
    std::vector<Release> chosen;
    Choose(label, may.data(), count, excess, &chosen, holds, visit);
  }

  bool LeavesOutput(const Label& label, int t) const {
    return IsSaved(t) && StageOf(t) < loss_ && label.where.at(Activation(StageOf(t))) == kNowhere;
  }

  Release Reduced(const Label& label, int t, bool backward) const {
    const int64_t bytes = Size(t) - Size(Activation(StageOf(t)));
    const bool input = backward && StageOf(t) == label.where.gradient - 1;
    return {t, Release::kReduce, bytes, input ? Size(t) : bytes};
  }

  template <typename Holds, typename Visit>
  void Choose(const Label& label, const Release* may, size_t count, const Excess& excess,
              std::vector<Release>* chosen, Holds& holds, Visit& visit) const {
    if (excess.Gone()) {
      if (IsLeast(label, *chosen, excess)) Apply(label, *chosen, holds, visit);
      return;
    }
    if (count == 0) return;
    if (chosen->empty() || chosen->back().tensor != may->tensor) {
      chosen->push_back(*may);
      Choose(label, may + 1, count - 1, excess.Less(*may), chosen, holds, visit);
      chosen->pop_back();
    }
    Choose(label, may + 1, count - 1, excess, chosen, holds, visit);
  }

  // Whether none of them could be left out, or leave an output.
  bool IsLeast(const Label& label, const std::vector<Release>& chosen, const Excess& excess) const {
    for (const Release& one : chosen) {
      const Excess without = excess.More(one);
      if (without.Gone()) return false;
      if (one.kind != Release::kDiscard || !LeavesOutput(label, one.tensor)) continue;
      if (without.Less(Reduced(label, one.tensor, false)).Gone()) return false;
    }
    return true;
  }

  template <typename Holds, typename Visit>
  void Apply(const Label& label, const std::vector<Release>& chosen, Holds& holds,
             Visit& visit) const {
    Label next = label;
    for (const Release& one : chosen) {
      const int t = one.tensor;
      next.device -= one.bytes;
      switch (one.kind) {
        case Release::kWait:
          next.where.Put(t, kAway);
          next.now = std::max(next.now, End(next, t));
          next.ends[static_cast<size_t>(t)] = 0;
          next.step.left |= Bit(t);
          break;
        case Release::kReduce:
          next.where.Put(Activation(StageOf(t)), kHeld);
          next.where.Put(t, kNowhere);
          next.step.reduced |= Bit(t);
          break;
        case Release::kDiscard:
          next.where.Put(t, kNowhere);
          next.step.dropped |= Bit(t);
      }
    }
    if (holds(next.where)) visit(next);
  }

  void Add(Label next) {
    if (next.device > budget_) return;
    // What has arrived is waited for in no time, and can only be of more use then.
    for (int t = 0; t < tensors_; ++t) {
      if (next.where.at(t) == kComing && End(next, t) <= next.now) {
        Arrive(t, &next);
        next.step.arrived |= Bit(t);
        next.fresh = kAllTensors;
      }
      int64_t& end = next.ends[static_cast<size_t>(t)];
      if (end <= next.now) end = 0;
    }
    next.before = from_;
    Reach(next);
  }

  void Reach(const Label& label) {
    if (IsLate(label)) return;
    const int64_t estimate = Estimate(label);
    if (estimate >= known_) return;
    ForEachOther(label.where, Side::kLess, [&](std::vector<Reached>* others) {
      others->erase(
          std::remove_if(others->begin(), others->end(),
                         [&](const Reached& other) {
                           if (label.now > other.now || !NowhereLater(label, labels_[other.label]))
                             return false;
                           superseded_[other.label] = true;
                           return true;
                         }),
          others->end());
    });
    reached_[label.where.Key()].push_back(
        {label.now, static_cast<uint32_t>(labels_.size()), label.fresh});
    open_.push({estimate, label.where.gradient, -label.now, labels_.size()});
    labels_.push_back(label);
    superseded_.push_back(false);
  }

  // Whether all that may follow may follow another label no later.
  bool IsLate(const Label& label) {
    bool late = false;
    ForEachOther(label.where, Side::kMore, [&](std::vector<Reached>* others) {
      late = late || std::any_of(others->begin(), others->end(), [&](const Reached& other) {
               return other.now <= label.now && (label.fresh & ~other.fresh) == 0 &&
                      NowhereLater(labels_[other.label], label);
             });
    });
    return late;
  }

  enum class Side { kMore, kLess };

  // The labels of the state itself, and of those that hold one tensor more, which may be dropped at any time, or less.
  template <typename Visit>
  void ForEachOther(const Whereabouts& where, Side side, Visit visit) {
    const auto look = [&](const Whereabouts& other) {
      const auto found = reached_.find(other.Key());
      if (found != reached_.end() && !found->second.empty()) visit(&found->second);
    };
    look(where);
    const Place from = side == Side::kMore ? kNowhere : kHeld,
                to = side == Side::kMore ? kHeld : kNowhere;
    for (int t = 1; t < tensors_; ++t) {
      const int l = StageOf(t);
      if (l > where.gradient || (where.stopped && l == where.gradient)) continue;
      if (IsSaved(t) && !chain_.stage(l).recomputable()) continue;
      if (where.at(t) != from) continue;
      Whereabouts other = where;
      other.Put(t, to);
      look(other);
    }
  }

  // Of two labels of the same state: all that may follow b may follow a, no later.
  bool NowhereLater(const Label& a, const Label& b) const {
    if (a.now > b.now) return false;
    if ((b.fresh & ~a.fresh) != 0) return false;
    if (!a.chained && (b.chained || a.peak < b.peak)) return false;
    for (size_t t = 0; t < static_cast<size_t>(tensors_); ++t) {
      if (a.ends[t] > std::max(b.ends[t], b.now)) return false;
    }
    return true;
  }

  // The ways to have as little elsewhere as the memories of device and host need while stage l runs, which takes `device` bytes.
  std::vector<Elsewhere> LeastElsewhere(int l, int64_t least) const {
    std::vector<Elsewhere> ways;
    const int combinations = 1 << (2 * l);
    for (int code = 0; code < combinations; ++code) {  // two bits each: here, made again, copied
      Elsewhere way;
      int64_t device = least, host = 0;
      bool possible = true;
      for (int k = 0; k < l; ++k) {
        const int where = code >> (2 * k) & 3;
        const int64_t bytes = Size(k == 0 ? Activation(0) : Saved(k));
        if (where == 0) device += bytes;
        if (where == 1) way.made_again |= Bit(k);
        if (where == 1) possible &= k > 0 && chain_.stage(k).recomputable();
        if (where == 2) way.copied |= Bit(k);
        if (where == 2) host += bytes;
        if (where == 3) possible = false;
      }
      // Its input is there, in what stage l-1 saved or by itself.
      if (((way.made_again | way.copied) & Bit(l - 1)) != 0) device += Size(Activation(l - 1));
      if (!possible || device > budget_ || host > link_.host_memory.value()) continue;
      const auto within = [&way](const Elsewhere& other) { return other.Within(way); };
      if (std::any_of(ways.begin(), ways.end(), within)) continue;
      ways.erase(std::remove_if(ways.begin(), ways.end(),
                                [&way](const Elsewhere& other) { return way.Within(other); }),
                 ways.end());
      ways.push_back(way);
    }
    return ways;
  }

  std::vector<Elsewhere> LeastElsewhereBackward(int l) const {
    const Stage& stage = chain_.stage(l);
    int64_t device = chain_.gradient(l).value() + stage.backward_overhead.value() + Size(Saved(l));
    if (stage.stops()) device -= chain_.activation(l).value();
    return LeastElsewhere(l, device);
  }

  // Of its first forward.
  std::vector<Elsewhere> LeastElsewhereForward(int l) const {
    const Stage& stage = chain_.stage(l);
    int64_t device = Size(Saved(l)) + stage.forward_saving_overhead.value();
    if (l < loss_ && stage.recomputable()) {
      device = std::min(device, Size(Activation(l)) + stage.forward_overhead.value());
    }
    return LeastElsewhere(l, chain_.gradient(loss_).value() + device);
  }

  // No schedule ends earlier that has this elsewhere when stage l runs. Before then `ran` has passed, and forwards of stages
  // below l; from then on what is below takes another `after`.
  int64_t EndWith(const Label& label, int l, const Elsewhere& way, int64_t ran,
                  int64_t after) const {
    int64_t again = 0, some_time = 0, below = 0, leave = 0;
    for (int k = 0; k < l; ++k) {
      const size_t i = static_cast<size_t>(k);
      const int t = k == 0 ? Activation(0) : Saved(k);
      const bool gone = label.where.at(t) == kLeaving || label.where.at(t) == kAway;
      if ((way.copied & Bit(k)) != 0 && !gone) leave += to_host_[static_cast<size_t>(t)];
      if (k == 0) continue;
      const bool made_again = (way.made_again & Bit(k)) != 0;
      if (k > label.reached) {
        ran += forward_[i];
        if (made_again) again += least_forward_[i];
      } else if (label.where.at(Saved(k)) == kNowhere || made_again) {
        // What is nowhere, and will be here then, is made before that or after it; what is copied before it leaves.
        const bool copied = (way.copied & Bit(k)) != 0;
        (made_again ? again : copied ? ran : some_time) += least_forward_[i];
      }
      below += backward_[i];
    }
    int64_t end = ran + some_time + again + after + below;
    if (leave > 0) ran = std::max(ran, ChannelFree(label, kLeaving) + leave);
    end = std::max(end, ran + again + after + below);
    int64_t copies = 0, both = leave;
    const int64_t free = link_.full_duplex ? 0 : ChannelFree(label, kComing);
    for (int k = l - 1; k >= 0; --k) {
      if ((way.copied & Bit(k)) != 0) {
        const int64_t back = to_device_[static_cast<size_t>(k == 0 ? Activation(0) : Saved(k))];
        copies += back;
        both += back;
        // Before the backward that reads it, and those below.
        const int64_t left = k == 0 ? backward_[1] : below;
        end = std::max(end, ran + copies + left);
        if (!link_.full_duplex) end = std::max(end, free + both + left);
      }
      if (k > 0) below -= backward_[static_cast<size_t>(k)];
    }
    return end;
  }

  int64_t EndWithLeast(const std::vector<Elsewhere>& ways, const Label& label, int l, int64_t ran,
                       int64_t after, int64_t end) const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Elsewhere& way : ways) {
      if (least <= end) break;
      least = std::min(least, EndWith(label, l, way, ran, after));
    }
    return std::max(end, least);
  }

  int64_t EndWithLeastElsewhere(const Label& label, int64_t end) const {
    // Backwards to come.
    int64_t ran = label.now;
    for (int l = label.where.gradient; l > 1; --l) {
      const size_t i = static_cast<size_t>(l);
      if (label.where.at(Saved(l)) == kNowhere)
        ran += l > label.reached ? forward_[i] : least_forward_[i];
      end = EndWithLeast(elsewhere_backward_[i], label, l, ran, backward_[i], end);
      ran += backward_[i];
    }
    // First forwards to come.
    int64_t after = 0;
    for (int l = loss_; l >= 1; --l) after += backward_[static_cast<size_t>(l)];
    int64_t below = after;
    for (int l = loss_; l > label.reached; --l) {
      const size_t i = static_cast<size_t>(l);
      after += forward_[i];
      below -= backward_[i];
      end = EndWithLeast(elsewhere_forward_[i], label, l, label.now, after - below, end);
    }
    return end;
  }

  // No schedule that goes on from here ends earlier.
  int64_t Estimate(const Label& label) const {
    int64_t backwards = 0;  // from stage l down
    int64_t forwards = 0;   // of what has to be saved yet
    int64_t estimate = 0;
    for (int l = 1; l <= label.where.gradient; ++l) {
      backwards += backward_[static_cast<size_t>(l)];
      if (label.where.at(Saved(l)) == kNowhere) forwards += least_forward_[static_cast<size_t>(l)];
      estimate = std::max(estimate, AllBack(label, l) + backwards);
    }
    estimate = std::max(estimate, label.now + forwards + backwards);
    return estimate >= known_ ? estimate : EndWithLeastElsewhere(label, estimate);
  }

  // When everything that is away, and has to be back before backward l ends, can be.
  int64_t AllBack(const Label& label, int l) const {
    int64_t free = ChannelFree(label, kComing);
    int64_t back = label.now;
    for (int t = Activation(l - 1); t < tensors_; ++t) {
      const Place place = label.where.at(t);
      if (place == kComing) back = std::max(back, End(label, t));
      if (place == kLeaving || place == kAway) free += to_device_[static_cast<size_t>(t)];
      if (place == kLeaving || place == kAway) back = std::max(back, free);
    }
    return back;
  }

  template <typename Make>
  void Each(uint16_t tensors, Make make, Schedule* schedule) const {
    for (int t = 0; t < tensors_; ++t) {
      if ((tensors & Bit(t)) != 0) schedule->push_back(make(t));
    }
  }

  Schedule Found(size_t index) const {
    std::vector<const Step*> steps;
    for (; index != 0; index = labels_[index].before) steps.push_back(&labels_[index].step);
    const auto prefetched = [](int t) { return PrefetchWait(KindOf(t), StageOf(t)); };
    Schedule schedule;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      Each((*step)->awaited, prefetched, &schedule);
      Each((*step)->left, [](int t) { return OffloadWait(KindOf(t), StageOf(t)); }, &schedule);
      Each((*step)->dropped, [](int t) { return Discard(KindOf(t), StageOf(t)); }, &schedule);
      Each((*step)->reduced, [](int t) { return DropSavedKeepOutput(StageOf(t)); }, &schedule);
      schedule.push_back((*step)->instruction);
      Each((*step)->arrived, prefetched, &schedule);
    }
    return schedule;
  }

  // Estimate; of equal ones the nearest to the end first; index.
  using Item = std::tuple<int64_t, int, int64_t, size_t>;

  const Chain& chain_;
  const TransferModel& link_;
  const int64_t budget_;
  const int64_t known_;
  StopPoll poll_;
  const size_t most_labels_;
  const int loss_;
  const int tensors_;
  std::array<int64_t, kMostTensors> bytes_ = {};
  std::array<int64_t, kMostTensors> to_host_ = {};
  std::array<int64_t, kMostTensors> to_device_ = {};
  std::array<int64_t, kMostTensors> forward_ = {};  // by stage
  std::array<int64_t, kMostTensors> least_forward_ = {};
  std::array<int64_t, kMostTensors> backward_ = {};
  std::array<std::vector<Elsewhere>, kMostTensors> elsewhere_backward_,
      elsewhere_forward_;  // by stage
  std::priority_queue<Item, std::vector<Item>, std::greater<Item>> open_;
  absl::flat_hash_map<uint64_t, std::vector<Reached>> reached_;
  std::vector<Label> labels_;
  std::vector<bool> superseded_;
  uint32_t from_ = 0;
};

}  // namespace

absl::StatusOr<ShortChainAnswer> SearchShortChain(const Instance& instance, Bytes memory,
                                                  Nanos known, const SolveContext& context) {
  return ShortChainSearch(instance, memory, known, context).Run();
}

}  // namespace stowage
