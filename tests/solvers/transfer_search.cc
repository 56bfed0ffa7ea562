#include "tests/solvers/transfer_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace stowage::testing {
namespace {

constexpr int kMaxTensors = 12;
constexpr int kPlaceBits = 3;

enum Place : uint64_t { kNowhere, kHeld, kLeaving, kAway, kComing };

// Tensors by number: activation l is 2l, saved l is 2l-1.
int Activation(int l) { return 2 * l; }
int Saved(int l) { return 2 * l - 1; }
bool IsSaved(int tensor) { return tensor % 2 == 1; }
int StageOf(int tensor) { return (tensor + 1) / 2; }
TensorKind KindOf(int tensor) {
  return IsSaved(tensor) ? TensorKind::kSaved : TensorKind::kActivation;
}

// Where every tensor is, and the next backward.
struct Whereabouts {
  uint64_t places = 0;
  int gradient = 0;
  bool stopped =
      false;  // saved `gradient` is there without the output: what runs next is its backward

  Place at(int tensor) const {
    return static_cast<Place>(places >> (kPlaceBits * tensor) & ((1u << kPlaceBits) - 1));
  }
  bool Readable(int tensor) const { return at(tensor) == kHeld || at(tensor) == kLeaving; }
  void Put(int tensor, Place place) { places ^= (at(tensor) ^ place) << (kPlaceBits * tensor); }
  uint64_t Key() const {
    return places << 5 | static_cast<uint64_t>(gradient) << 1 | (stopped ? 1 : 0);
  }
};

struct Label {
  Whereabouts where;
  int64_t now = 0;                             // compute has done all so far
  std::array<int64_t, kMaxTensors> ends = {};  // of copies that end after now; others: now or 0
  Instruction last;
  size_t before = 0;
};

// kNone: all takes no time, so that a state has one label. Tells what fits at all.
enum class Times { kNone, kReal };

class Search {
 public:
  Search(const Chain& chain, const TransferModel& transfers, int64_t budget, Times times)
      : chain_(chain),
        transfers_(transfers),
        budget_(budget),
        loss_(chain.length() + 1),
        tensors_(2 * loss_) {
    for (int t = 0; t < tensors_; ++t) {
      const size_t i = static_cast<size_t>(t);
      bytes_[i] = IsSaved(t) ? chain.stage(StageOf(t)).saved : chain.activation(StageOf(t));
      if (times == Times::kNone) continue;
      to_host_[i] = CopyTime(transfers.to_host, bytes_[i]).value();
      to_device_[i] = CopyTime(transfers.to_device, bytes_[i]).value();
    }
    for (int l = 1; times == Times::kReal && l <= loss_; ++l) {
      const Stage& stage = chain.stage(l);
      forward_[static_cast<size_t>(l)] = stage.forward_time.value();
      least_forward_[static_cast<size_t>(l)] =
          stage.recomputable() ? stage.stopped_time().value() : stage.forward_time.value();
      backward_[static_cast<size_t>(l)] = chain.stage(l).backward_time.value();
    }
  }

  std::optional<FoundSchedule> Run() {
    Label start;
    start.where.gradient = loss_;
    start.where.Put(Activation(0), kHeld);
    if (DeviceMemory(start.where) > budget_) return std::nullopt;
    Reach(start);
    while (!open_.empty()) {
      const size_t index = std::get<3>(open_.top());
      open_.pop();
      if (superseded_[index]) continue;
      if (labels_[index].where.gradient == 0) return Found(index);
      Expand(index);
    }
    return std::nullopt;
  }

 private:
  int64_t DeviceMemory(const Whereabouts& where) const {
    int64_t sum = chain_.gradient(where.gradient).value();
    for (int t = 0; t < tensors_; ++t) {
      if (where.at(t) != kNowhere && where.at(t) != kAway) sum += Size(t);
    }
    if (where.stopped) sum -= chain_.activation(where.gradient).value();
    return sum;
  }

  int64_t HostMemory(const Whereabouts& where) const {
    int64_t sum = 0;
    for (int t = 0; t < tensors_; ++t) {
      if (where.at(t) >= kLeaving) sum += Size(t);
    }
    return sum;
  }

  int64_t Size(int tensor) const { return bytes_[static_cast<size_t>(tensor)].value(); }

  void Expand(size_t index) {
    const Label label = labels_[index];  // a copy: labels_ grows
    from_ = index;
    // What has arrived is waited for in no time, and can only be of more use then.
    for (int t = 0; t < tensors_; ++t) {
      if (label.where.at(t) == kComing && End(label, t) <= label.now) return Wait(label, t);
    }
    for (int t = 0; t < tensors_; ++t) ExpandTensor(label, t);
    const int next = label.where.gradient;
    if (label.where.stopped) {
      if (HasInput(label.where, next)) RunBackward(label);
      return;
    }
    StoppedForward(label);
    // What is made for stages above the next backward nothing can use.
    for (int l = 1; l <= next; ++l) {
      if (!HasInput(label.where, l)) continue;
      Forward(label, Saved(l));
      if (l < next && chain_.stage(l).recomputable()) Forward(label, Activation(l));
    }
    if (HasInput(label.where, next)) RunBackward(label);
  }

  static int64_t End(const Label& label, int tensor) {
    return label.ends[static_cast<size_t>(tensor)];
  }

  static bool HasInput(const Whereabouts& where, int l) {
    return where.Readable(Activation(l - 1)) || (l > 1 && where.Readable(Saved(l - 1)));
  }

  void ExpandTensor(const Label& label, int t) {
    if (label.where.stopped && StageOf(t) == label.where.gradient) return;
    switch (label.where.at(t)) {
      case kNowhere:
        break;
      case kHeld:
        Drop(label, t);
        StartOffload(label, t);
        break;
      case kLeaving:
      case kComing:
        Wait(label, t);
        break;
      case kAway:
        StartPrefetch(label, t);
    }
  }

  // Without the input the first backward never runs. What a stage that runs once has saved its
  // backward must find.
  void Drop(const Label& label, int t) {
    if (t == Activation(0) || (IsSaved(t) && !chain_.stage(StageOf(t)).recomputable())) return;
    Label next = label;
    next.where.Put(t, kNowhere);
    Add(next, Discard(KindOf(t), StageOf(t)));
    if (!IsSaved(t) || StageOf(t) == loss_) return;
    const int output = Activation(StageOf(t));
    if (label.where.at(output) != kNowhere) return;
    next.where.Put(output, kHeld);
    Add(next, DropSavedKeepOutput(StageOf(t)));
  }

  // What leaves comes back: an offload without a prefetch can be a discard, in place of its wait.
  // So nothing is discarded on the host.
  void StartOffload(const Label& label, int t) {
    Label next = label;
    next.where.Put(t, kLeaving);
    if (HostMemory(next.where) > transfers_.host_memory.value()) return;
    StartCopy(&next, t, kLeaving, to_host_[static_cast<size_t>(t)]);
    Add(next, OffloadStart(KindOf(t), StageOf(t)));
  }

  void StartPrefetch(const Label& label, int t) {
    Label next = label;
    next.where.Put(t, kComing);
    StartCopy(&next, t, kComing, to_device_[static_cast<size_t>(t)]);
    Add(next, PrefetchStart(KindOf(t), StageOf(t)));
  }

  void StartCopy(Label* label, int t, Place direction, int64_t time) {
    label->ends[static_cast<size_t>(t)] = 0;
    label->ends[static_cast<size_t>(t)] = ChannelFree(*label, direction) + time;
  }

  // When the channel has done what was started. What was waited for has ended.
  int64_t ChannelFree(const Label& label, Place direction) const {
    int64_t free = label.now;
    for (int t = 0; t < tensors_; ++t) {
      const Place place = label.where.at(t);
      const bool copied = place == kLeaving || place == kComing;
      if (!copied || (transfers_.full_duplex && place != direction)) continue;
      free = std::max(free, End(label, t));
    }
    return free;
  }

  void Wait(const Label& label, int t) {
    Label next = label;
    const bool leaves = label.where.at(t) == kLeaving;
    next.where.Put(t, leaves ? kAway : kHeld);
    next.now = std::max(next.now, End(label, t));
    next.ends[static_cast<size_t>(t)] = 0;
    const Instruction wait =
        leaves ? OffloadWait(KindOf(t), StageOf(t)) : PrefetchWait(KindOf(t), StageOf(t));
    Add(next, wait);
  }

  // Makes the tensor from the input of its stage. A forward that drops its input is one that keeps
  // it and a discard.
  void Forward(const Label& label, int made) {
    if (label.where.at(made) != kNowhere) return;
    const Stage& stage = chain_.stage(StageOf(made));
    const Bytes overhead = IsSaved(made) ? stage.forward_saving_overhead : stage.forward_overhead;
    if (DeviceMemory(label.where) + Size(made) + overhead.value() > budget_) return;
    Label next = label;
    next.where.Put(made, kHeld);
    next.now += forward_[static_cast<size_t>(StageOf(made))];
    Add(next, IsSaved(made) ? ForwardSave(StageOf(made)) : ForwardNoSave(StageOf(made)));
  }

  // A recompute of the stage whose backward is next, which has run before.
  void StoppedForward(const Label& label) {
    const int l = label.where.gradient;
    const Stage& stage = chain_.stage(l);
    if (!stage.recompute_saving_time || !stage.recomputable() || !HasInput(label.where, l)) return;
    if (label.where.at(Saved(l)) != kNowhere) return;
    Label next = label;
    next.where.Put(Saved(l), kHeld);
    next.where.stopped = true;
    const Bytes overhead =
        stage.recompute_saving_overhead.value_or(stage.output + stage.forward_saving_overhead);
    if (DeviceMemory(next.where) + overhead.value() > budget_) return;
    if (forward_[static_cast<size_t>(l)] > 0) next.now += stage.recompute_saving_time->value();
    Add(next, ForwardSave(l));
  }

  void RunBackward(const Label& label) {
    const int l = label.where.gradient;
    const int input = Activation(l - 1);
    const Stage& stage = chain_.stage(l);
    if (label.where.at(Saved(l)) != kHeld || label.where.at(input) > kHeld) return;
    if (DeviceMemory(label.where) + stage.backward_overhead.value() > budget_) return;
    Label next = label;
    next.where.Put(Saved(l), kNowhere);
    next.where.Put(input, kNowhere);
    next.where.gradient = l - 1;
    next.where.stopped = false;
    next.now += backward_[static_cast<size_t>(l)];
    Add(next, Backward(l));
  }

  void Add(Label next, const Instruction& instruction) {
    if (DeviceMemory(next.where) > budget_) return;
    next.last = instruction;
    next.before = from_;
    Reach(next);
  }

  void Reach(const Label& label) {
    std::vector<size_t>& others = reached_[label.where.Key()];
    for (const size_t other : others) {
      if (NowhereLater(labels_[other], label)) return;
    }
    others.erase(std::remove_if(others.begin(), others.end(),
                                [&](size_t other) {
                                  if (!NowhereLater(label, labels_[other])) return false;
                                  superseded_[other] = true;
                                  return true;
                                }),
                 others.end());
    others.push_back(labels_.size());
    open_.push({Estimate(label), label.where.gradient, -label.now, labels_.size()});
    labels_.push_back(label);
    superseded_.push_back(false);
  }

  // Of two labels of the same state.
  bool NowhereLater(const Label& a, const Label& b) const {
    if (a.now > b.now) return false;
    for (size_t t = 0; t < static_cast<size_t>(tensors_); ++t) {
      if (std::max(a.ends[t], a.now) > std::max(b.ends[t], b.now)) return false;
    }
    return true;
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
    return std::max(estimate, label.now + forwards + backwards);
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

  FoundSchedule Found(size_t index) const {
    FoundSchedule found{labels_[index].now, {}};
    for (; index != 0; index = labels_[index].before) {
      found.schedule.push_back(labels_[index].last);
    }
    std::reverse(found.schedule.begin(), found.schedule.end());
    return found;
  }

  // Estimate; of equal ones the nearest to the end first; index.
  using Item = std::tuple<int64_t, int, int64_t, size_t>;

  const Chain& chain_;
  const TransferModel& transfers_;
  const int64_t budget_;
  const int loss_;
  const int tensors_;
  std::array<Bytes, kMaxTensors> bytes_ = {};
  std::array<int64_t, kMaxTensors> to_host_ = {};
  std::array<int64_t, kMaxTensors> to_device_ = {};
  std::array<int64_t, kMaxTensors> forward_ = {};  // by stage
  std::array<int64_t, kMaxTensors> least_forward_ = {};
  std::array<int64_t, kMaxTensors> backward_ = {};
  std::priority_queue<Item, std::vector<Item>, std::greater<Item>> open_;
  std::unordered_map<uint64_t, std::vector<size_t>> reached_;
  std::vector<Label> labels_;
  std::vector<bool> superseded_;
  size_t from_ = 0;
};

}  // namespace

std::optional<FoundSchedule> SearchTransfers(const Chain& chain, const TransferModel& transfers,
                                             int64_t budget) {
  if (!Search(chain, transfers, budget, Times::kNone).Run()) return std::nullopt;
  return Search(chain, transfers, budget, Times::kReal).Run();
}

}  // namespace stowage::testing
