#include "solvers/transfer/internal/short_chain_search.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
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

constexpr bool IsCopied(Place place) { return place == kLeaving || place == kComing; }

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
  Whereabouts() = default;
  explicit Whereabouts(uint64_t key)
      : gradient(static_cast<int>(key >> 1 & 15)), stopped((key & 1) != 0), places_(key >> 5) {}

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

constexpr uint32_t kNoLabel = std::numeric_limits<uint32_t>::max();

// What is kept of a label. What it holds, and the step to it, follow from this.
struct KeptLabel {
  uint64_t key;  // of its whereabouts
  int64_t now;
  int64_t peak;
  uint32_t before;
  uint32_t ends;  // the first of those of its copies, which lie one after the other, by tensor
  uint32_t next;  // of the same state
  uint16_t fresh;
  uint8_t reached;
  bool chained : 1;
  bool superseded : 1;
};

// With its ends, its place in the queue and its share of the table of states, while all of these grow.
constexpr size_t kBytesPerLabel = 160;

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
        most_labels_(static_cast<size_t>(context.memory().value()) / kBytesPerLabel),
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
    int64_t forward = 0;
    for (int l = 1; l <= loss_; ++l) {
      const size_t i = static_cast<size_t>(l);
      forward = std::max(forward, forward_[i]);
      longest_[i] = std::max(forward, backward_[i]);
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
    while (!open_.empty() && kept_.size() < most_labels_) {
      const uint32_t index = open_.top().index;
      open_.pop();
      if (kept_[index].superseded) continue;
      absl::Status status = poll_.Spend(2000);
      if (!status.ok()) return status;
      if (Whereabouts(kept_[index].key).gradient == 0) {
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
  int64_t Begin(const Label& label, int tensor) const {
    const bool leaves = label.where.at(tensor) == kLeaving;
    return End(label, tensor) - (leaves ? to_host_ : to_device_)[static_cast<size_t>(tensor)];
  }

  Label LabelOf(uint32_t index) const {
    const KeptLabel& kept = kept_[index];
    Label label;
    label.where = Whereabouts(kept.key);
    label.now = kept.now;
    label.peak = kept.peak;
    label.fresh = kept.fresh;
    label.chained = kept.chained;
    label.reached = kept.reached;
    const int64_t* end = ends_.data() + kept.ends;
    label.device = chain_.gradient(label.where.gradient).value();
    if (label.where.stopped) label.device -= chain_.activation(label.where.gradient).value();
    for (int t = 0; t < tensors_; ++t) {
      const Place place = label.where.at(t);
      if (place == kNowhere) continue;
      if (place != kAway) label.device += Size(t);
      if (place >= kLeaving) label.host += Size(t);
      if (IsCopied(place)) label.ends[static_cast<size_t>(t)] = *end++;
    }
    return label;
  }

  void Expand(uint32_t index) {
    const Label label = LabelOf(index);
    from_ = index;
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

  // What leaves comes back: an offload without a prefetch can be a discard, in place of its wait. What has no bytes may as well stay.
  void StartOffload(const Label& label, int t) {
    if (label.where.at(t) != kHeld || (label.fresh & Bit(t)) == 0 || Size(t) == 0) return;
    if (label.host + Size(t) > link_.host_memory.value()) return;
    Label next = label;
    next.step = Step();
    PutOffload(t, &next);
    Add(next);
  }

  // Of the output alone, which is less to copy than all that is saved with it.
  void StartOffloadOfOutput(const Label& label, int l) {
    const int t = Activation(l);
    if (label.where.at(Saved(l)) != kHeld || (label.fresh & Bit(Saved(l))) == 0 || Size(t) == 0)
      return;
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
      if (!IsCopied(place) || (link_.full_duplex && place != direction)) continue;
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
    // A copy that has not begun by now is one that is started after this, and begins no later: where a channel was busy
    // all along, nothing could have started earlier.
    bool busy_out = false, busy_in = false;
    for (int t = 0; t < tensors_; ++t) {
      if (!IsCopied(next->where.at(t)) || End(*next, t) < next->now) continue;
      if (Begin(*next, t) > next->now) return;
      const bool leaves = next->where.at(t) == kLeaving;
      busy_out |= leaves || !link_.full_duplex;
      busy_in |= !leaves || !link_.full_duplex;
    }
    next->fresh = busy_out ? kAllTensors : made;
    next->chained = busy_in;
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
    if (looked_for_ != kNoLabel) return Compare(label);
    const uint32_t index = static_cast<uint32_t>(kept_.size());
    const uint32_t first_end = static_cast<uint32_t>(ends_.size());
    KeptLabel kept{label.where.Key(), label.now, label.peak,  label.before,
                   first_end,         kNoLabel,  label.fresh, static_cast<uint8_t>(label.reached),
                   label.chained,     false};
    for (int t = 0; t < tensors_; ++t) {
      if (IsCopied(label.where.at(t))) ends_.push_back(End(label, t));
    }
    const int64_t estimate = IsLate(kept, label) ? known_ : Estimate(label);
    if (estimate >= known_) {
      ends_.resize(first_end);
      return;
    }
    ForEachOther(label.where, Side::kLess, [&](uint32_t* link) {
      while (*link != kNoLabel) {
        KeptLabel& other = kept_[*link];
        if (NowhereLater(kept, other)) {
          other.superseded = true;
          *link = other.next;
        } else {
          link = &other.next;
        }
      }
    });
    uint32_t& first = reached_.try_emplace(kept.key, kNoLabel).first->second;
    kept.next = first;
    first = index;
    kept_.push_back(kept);
    open_.push({estimate, label.now, label.where.gradient, index});
  }

  // Whether all that may follow may follow another label no later.
  bool IsLate(const KeptLabel& kept, const Label& label) {
    bool late = false;
    ForEachOther(label.where, Side::kMore, [&](const uint32_t* link) {
      for (uint32_t other = *link; !late && other != kNoLabel; other = kept_[other].next)
        late = NowhereLater(kept_[other], kept);
    });
    return late;
  }

  enum class Side { kMore, kLess };

  // The labels of the state itself, and of those that hold one tensor more, which may be dropped at any time, or less.
  template <typename Visit>
  void ForEachOther(const Whereabouts& where, Side side, Visit visit) {
    const auto look = [&](const Whereabouts& other) {
      const auto found = reached_.find(other.Key());
      if (found != reached_.end()) visit(&found->second);
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

  // How many are under way.
  static size_t Copies(const KeptLabel& label) {
    static_assert(kMostTensors <= 12 && kLeaving == 2 && kComing == 4);
    constexpr uint64_t kLowBits = 0x249249249;
    const uint64_t places = label.key >> 5;
    return std::bitset<64>(((places >> 1 & ~places) | places >> 2) & kLowBits).count();
  }

  // Of two labels of states whose copies are the same: all that may follow b may follow a, no later.
  bool NowhereLater(const KeptLabel& a, const KeptLabel& b) const {
    if (a.now > b.now) return false;
    if ((b.fresh & ~a.fresh) != 0) return false;
    if (!a.chained && (b.chained || a.peak < b.peak)) return false;
    const int64_t *ends_a = ends_.data() + a.ends, *ends_b = ends_.data() + b.ends;
    for (size_t i = 0; i < Copies(a); ++i) {
      if (ends_a[i] > std::max(ends_b[i], b.now)) return false;
    }
    return true;
  }

  // Steps are not kept: the one to a label is that which leads to it from the label before.
  void Compare(const Label& label) {
    const KeptLabel& kept = kept_[looked_for_];
    if (label.where.Key() != kept.key || label.now != kept.now || label.peak != kept.peak ||
        label.fresh != kept.fresh || label.chained != kept.chained)
      return;
    const int64_t* end = ends_.data() + kept.ends;
    for (int t = 0; t < tensors_; ++t) {
      if (IsCopied(label.where.at(t)) && End(label, t) != *end++) return;
    }
    step_ = label.step;
  }

  // Whether there is room to save stage k once more, with some gradient from `gradient` down.
  bool MayBeMadeAgain(int k, int gradient) const {
    const Stage& stage = chain_.stage(k);
    if (!stage.recomputable()) return false;
    for (int g = k; g <= gradient; ++g) {
      int64_t made = Size(Saved(k)) + stage.forward_saving_overhead.value();
      if (g == k)
        made = std::min(made, stage.stopped_saved().value() + stage.stopped_overhead().value());
      if (chain_.gradient(g).value() + Size(Activation(k - 1)) + made <= budget_) return true;
    }
    return false;
  }

  // The ways to have as little elsewhere as the memories of device and host need while stage l runs, which takes `device` bytes.
  std::vector<Elsewhere> LeastElsewhere(int l, int64_t least, int gradient) const {
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
        if (where == 1) possible &= k > 0 && MayBeMadeAgain(k, gradient);
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
    return LeastElsewhere(l, device, l - 1);
  }

  // Of its first forward.
  std::vector<Elsewhere> LeastElsewhereForward(int l) const {
    const Stage& stage = chain_.stage(l);
    int64_t device = Size(Saved(l)) + stage.forward_saving_overhead.value();
    if (l < loss_ && stage.recomputable()) {
      device = std::min(device, Size(Activation(l)) + stage.forward_overhead.value());
    }
    return LeastElsewhere(l, chain_.gradient(loss_).value() + device, loss_);
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
    const int64_t start = std::max(
        label.now, EarliestEnd(label) - longest_[static_cast<size_t>(label.where.gradient)]);
    estimate = std::max(estimate, start + forwards + backwards);
    return estimate >= known_ ? estimate : EndWithLeastElsewhere(label, estimate);
  }

  // Of the next forward or backward: the last copy that is started has begun by then.
  int64_t EarliestEnd(const Label& label) const {
    int64_t end = label.now;
    for (int t = 0; t < tensors_; ++t) {
      if (End(label, t) > label.now) end = std::max(end, Begin(label, t));
    }
    return end;
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

  Schedule Found(uint32_t index) {
    std::vector<Step> steps;
    for (; index != 0; index = kept_[index].before) {
      looked_for_ = index;
      Expand(kept_[index].before);
      steps.push_back(step_);
    }
    const auto prefetched = [](int t) { return PrefetchWait(KindOf(t), StageOf(t)); };
    Schedule schedule;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      Each(step->awaited, prefetched, &schedule);
      Each(
          step->left, [](int t) { return OffloadWait(KindOf(t), StageOf(t)); }, &schedule);
      Each(
          step->dropped, [](int t) { return Discard(KindOf(t), StageOf(t)); }, &schedule);
      Each(
          step->reduced, [](int t) { return DropSavedKeepOutput(StageOf(t)); }, &schedule);
      schedule.push_back(step->instruction);
      Each(step->arrived, prefetched, &schedule);
    }
    return schedule;
  }

  struct Item {
    int64_t estimate;
    int64_t now;
    int gradient;
    uint32_t index;

    // The least estimate; of equal ones the nearest to the end.
    friend bool operator<(const Item& a, const Item& b) {
      return std::tie(b.estimate, b.gradient, a.now, b.index) <
             std::tie(a.estimate, a.gradient, b.now, a.index);
    }
  };

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
  std::array<int64_t, kMostTensors> longest_ = {};  // what may run next, by the next backward
  std::array<std::vector<Elsewhere>, kMostTensors> elsewhere_backward_,
      elsewhere_forward_;  // by stage
  std::priority_queue<Item> open_;
  absl::flat_hash_map<uint64_t, uint32_t> reached_;  // the first label of each state
  std::vector<KeptLabel> kept_;
  std::vector<int64_t> ends_;
  uint32_t looked_for_ = kNoLabel;  // by Found
  Step step_;
  uint32_t from_ = 0;
};

// Whether sums of times, each op's and each copy's more often than any schedule has it, stay what can be said.
bool SumsCanBeSaid(const Instance& instance) {
  static constexpr int64_t kMost = kMaxTotal / 64;
  const Chain& chain = instance.chain();
  const TransferModel& link = *instance.link();
  int64_t sum = 0;
  const auto add = [&sum](Nanos time) {
    sum = std::min(kMost, sum + std::min(kMost, time.value()));
  };
  for (int l = 0; l <= chain.length() + 1; ++l) {
    for (const Bytes bytes : {chain.activation(l), l > 0 ? chain.stage(l).saved : Bytes(0)}) {
      add(CopyTime(link.to_host, bytes));
      add(CopyTime(link.to_device, bytes));
    }
    if (l == 0) continue;
    add(chain.stage(l).forward_time);
    add(chain.stage(l).backward_time);
  }
  return sum < kMost;
}

}  // namespace

absl::StatusOr<ShortChainAnswer> SearchShortChain(const Instance& instance, Bytes memory,
                                                  Nanos known, const SolveContext& context) {
  if (!SumsCanBeSaid(instance)) return ShortChainAnswer();
  return ShortChainSearch(instance, memory, known, context).Run();
}

}  // namespace stowage
