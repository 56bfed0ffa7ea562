#include "solvers/transfer/internal/transfer_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

constexpr int kNoStep = std::numeric_limits<int>::max();
constexpr int kNone = -1;

class TransferFinder {
 public:
  TransferFinder(const Chain& chain, const Schedule& schedule,
                 const std::vector<TimelinePoint>& timeline)
      : chain_(chain), schedule_(schedule), timeline_(timeline) {
    const int last = chain.length() + 1;
    int items = 2 * (last + 1);
    first_part_.push_back(items);
    for (int l = 1; l <= last; ++l) first_part_.push_back(items += chain.stage(l).parts());
    items_.resize(static_cast<size_t>(items));
  }

  TransferSet Run() {
    for (size_t i = 0; i < schedule_.size(); ++i) {
      if (IsTransfer(schedule_[i].op)) {
        Transfer(schedule_[i]);
        TransferOf(At(ItemOf(schedule_[i]))).copies.push_back(i);
      } else {
        Compute(i);
      }
    }
    for (Item& item : items_) Need(&item, gap());
    LowerNeeds();
    return std::move(result_);
  }

 private:
  enum class Where { kDevice, kLeaving, kHost, kComing };

  // A tensor that may move: a plain activation, what a stage saved, or a part of that.
  struct Item {
    Where where = Where::kDevice;
    int transfer = kNone;   // the last one since it was made
    bool is_needed = true;  // since it came back
    int made = 0;           // the gap after
    int read = 0;           // the gap after the last time
  };

  // When a transfer's tensor was on the host.
  struct OnHost {
    int from = kNoStep;
    int to = kNoStep;
  };

  int gap() const { return static_cast<int>(result_.compute.size()); }

  int Plain(int l) const { return 2 * l; }
  int Saved(int l) const { return 2 * l + 1; }
  int PartsBegin(int l) const { return first_part_[static_cast<size_t>(l) - 1]; }
  int PartsEnd(int l) const { return first_part_[static_cast<size_t>(l)]; }
  Item& At(int item) { return items_[static_cast<size_t>(item)]; }
  TensorTransfer& TransferOf(const Item& item) {
    return result_.transfers[static_cast<size_t>(item.transfer)];
  }

  int ItemOf(const Instruction& i) const {
    if (i.part != 0) return PartsBegin(i.stage) + i.part - 1;
    return i.tensor == TensorKind::kSaved ? Saved(i.stage) : Plain(i.stage);
  }

  void Transfer(const Instruction& i) {
    Item& item = At(ItemOf(i));
    switch (i.op) {
      case Op::kOffloadStart:
        return Start(i, &item);
      case Op::kOffloadWait:
        item.where = Where::kHost;
        on_host_[static_cast<size_t>(item.transfer)].from = gap();
        return;
      case Op::kPrefetchStart:
        item.where = Where::kComing;
        on_host_[static_cast<size_t>(item.transfer)].to = gap();
        return;
      default:
        item.where = Where::kDevice;
        item.is_needed = false;
        TransferOf(item).returns = true;
    }
  }

  void Start(const Instruction& i, Item* item) {
    TensorTransfer transfer;
    transfer.tensor = i;
    transfer.made = item->made;
    transfer.free_from = std::max(item->made, item->read);
    transfer.on_host_by = transfer.back_by = transfer.dropped = kNoStep;
    const auto follow = [&](Item* before) {
      if (before->transfer == kNone) return;
      Need(before, gap());
      transfer.after.push_back(before->transfer);
      transfer.free_from = std::max(transfer.free_from, TransferOf(*before).back_by);
    };
    follow(item);
    if (i.tensor == TensorKind::kSaved) {
      // As a whole and in parts it is the same tensor.
      if (i.part != 0) follow(&At(Saved(i.stage)));
      for (int k = PartsBegin(i.stage); i.part == 0 && k < PartsEnd(i.stage); ++k) follow(&At(k));
    }
    transfer.bytes = i.part != 0                      ? chain_.stage(i.stage).part(i.part)
                     : i.tensor == TensorKind::kSaved ? chain_.stage(i.stage).saved
                                                      : chain_.activation(i.stage);
    item->where = Where::kLeaving;
    item->transfer = static_cast<int>(result_.transfers.size());
    result_.transfers.push_back(std::move(transfer));
    on_host_.emplace_back();
  }

  void Compute(size_t i) {
    const int l = schedule_[i].stage;
    switch (schedule_[i].op) {
      case Op::kForwardSave:
        ReadOutput(l - 1);
        ChangeSaved(l, /*ends=*/true);
        break;
      case Op::kForwardNoSave:
        ReadOutput(l - 1);
        Change(Plain(l), /*ends=*/true);
        break;
      case Op::kForwardNoSaveFreeInput:
        Change(Plain(l - 1), /*ends=*/true);
        Change(Plain(l), /*ends=*/true);
        break;
      case Op::kBackward:
        ReadOutput(l - 1);
        ChangeSaved(l, /*ends=*/true);
        // It drops its input only if it is there.
        Change(Plain(l - 1), /*ends=*/false);
        break;
      case Op::kDropSavedKeepOutput:
        ChangeSaved(l, /*ends=*/true);
        Change(Plain(l), /*ends=*/true);
        break;
      default:
        if (schedule_[i].tensor == TensorKind::kSaved) {
          ChangeSaved(l, /*ends=*/true);
        } else {
          Change(Plain(l), /*ends=*/true);
        }
    }
    const TimelinePoint& point = timeline_[i];
    result_.compute.push_back(schedule_[i]);
    result_.time.push_back(point.end - point.start);
    result_.need.push_back(std::max(point.running, point.held));
  }

  void ReadOutput(int l) {
    Read(Plain(l));
    if (l == 0) return;
    Read(Saved(l));
    if (PartsEnd(l) > PartsBegin(l)) Read(PartsEnd(l) - 1);
  }

  void ChangeSaved(int l, bool ends) {
    Change(Saved(l), ends);
    for (int k = PartsBegin(l); k < PartsEnd(l); ++k) Change(k, ends);
  }

  // The next instruction reads it, if it is there.
  void Read(int number) {
    Item& item = At(number);
    if (item.where == Where::kHost || item.where == Where::kComing) return;
    Need(&item, gap());
    item.read = gap() + 1;
    if (item.where == Where::kLeaving) TransferOf(item).free_from = item.read;
  }

  // The next instruction makes it or drops it; on the host, if that ends its transfer.
  void Change(int number, bool ends) {
    Item& item = At(number);
    if (item.where == Where::kDevice) Need(&item, gap());
    if (item.where != Where::kDevice) {
      TensorTransfer& transfer = TransferOf(item);
      transfer.on_host_by = std::min(transfer.on_host_by, gap());
      transfer.back_from = gap() + 1;
      if (!ends) return;
      transfer.dropped = gap();
      item.where = Where::kDevice;
    }
    item.transfer = kNone;
    item.made = item.read = gap() + 1;
  }

  // A tensor that came back is needed from this gap on.
  void Need(Item* item, int g) {
    if (item->is_needed) return;
    item->is_needed = true;
    TransferOf(*item).back_by = g;
  }

  void LowerNeeds() {
    std::vector<Bytes> less(result_.need.size() + 1);
    const int end = gap();
    const auto lower = [&](int from, int to, Bytes bytes) {
      if (from >= std::min(to, end)) return;
      less[static_cast<size_t>(from)] += bytes;
      less[static_cast<size_t>(std::min(to, end))] -= bytes;
    };
    for (size_t t = 0; t < result_.transfers.size(); ++t) {
      const TensorTransfer& transfer = result_.transfers[t];
      lower(transfer.free_from, on_host_[t].from, transfer.bytes);
      lower(on_host_[t].to, transfer.back_by, transfer.bytes);
    }
    Bytes sum;
    for (size_t j = 0; j < result_.need.size(); ++j) {
      sum += less[j];
      result_.need[j] -= sum;
    }
  }

  const Chain& chain_;
  const Schedule& schedule_;
  const std::vector<TimelinePoint>& timeline_;
  std::vector<int> first_part_;  // of stage l at l-1; the end of the last
  std::vector<Item> items_;
  std::vector<OnHost> on_host_;  // by transfer
  TransferSet result_;
};

}  // namespace

absl::StatusOr<TransferSet> FindTransfers(const Instance& instance, const Schedule& schedule) {
  absl::Status status = CheckNoCommunication(schedule);
  if (!status.ok()) return status;
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(schedule, &timeline);
  if (!simulation.ok()) return simulation.status();
  return TransferFinder(instance.chain(), schedule, timeline).Run();
}

namespace {

// No prefetch starts more instructions than that before it has to: that is soon enough, and keeps
// the cost of looking for memory linear.
constexpr int kEarliest = 512;

class OverlapReplay {
 public:
  OverlapReplay(const TransferSet& transfers, const std::vector<bool>& stays,
                const TransferModel& link, Bytes memory, OverlapRules rules)
      : transfers_(transfers),
        link_(link),
        memory_(memory),
        rules_(rules),
        end_(static_cast<int>(transfers.compute.size())),
        at_(transfers.compute.size() + 1),
        state_(transfers.transfers.size()),
        early_(transfers.compute.size() + 1) {
    for (size_t t = 0; t < state_.size(); ++t) {
      if (stays[t]) {
        state_[t].where = Where::kBack;
      } else {
        Enter(static_cast<int>(t));
      }
    }
    if (rules_.prefetch == PrefetchRule::kJustInTime) SetLatestStarts();
  }

  std::optional<Schedule> Run() {
    for (int g = 0; g <= end_; ++g) {
      if (!RunGap(g)) return std::nullopt;
      if (g == end_) break;
      schedule_.push_back(transfers_.compute[static_cast<size_t>(g)]);
      now_ += transfers_.time[static_cast<size_t>(g)];
      for (const int t : at_[static_cast<size_t>(g)].dropped) host_ -= TransferAt(t).bytes;
    }
    return std::move(schedule_);
  }

 private:
  enum class Where : uint8_t { kHere, kLeaving, kHost, kComing, kBack };

  struct State {
    Where where = Where::kHere;
    bool beyond_need = false;  // takes memory that need does not count
    Nanos end;                 // of its last copy
    Nanos latest;              // when its prefetch has to start, if compute never waits
    int prefetch_from = 0;     // no early prefetch before this gap
  };

  // What happens at a gap; transfers by number.
  struct Events {
    std::vector<int> ready, free, on_host, back, dropped;
  };

  const TensorTransfer& TransferAt(int t) const {
    return transfers_.transfers[static_cast<size_t>(t)];
  }
  State& StateAt(int t) { return state_[static_cast<size_t>(t)]; }
  Events& EventsAt(int g) { return at_[static_cast<size_t>(g)]; }

  void Enter(int t) {
    const TensorTransfer& transfer = TransferAt(t);
    const int ready = rules_.offload == OffloadRule::kSoon ? transfer.made : transfer.free_from;
    EventsAt(ready).ready.push_back(t);
    EventsAt(transfer.free_from).free.push_back(t);
    EventsAt(std::min(transfer.on_host_by, end_)).on_host.push_back(t);
    if (transfer.returns) EventsAt(transfer.back_by).back.push_back(t);
    if (transfer.dropped < end_) EventsAt(transfer.dropped).dropped.push_back(t);
  }

  // From the last one needed to the first, each before the one after it.
  void SetLatestStarts() {
    begins_.resize(transfers_.compute.size() + 1);
    for (size_t j = 0; j < transfers_.compute.size(); ++j) {
      begins_[j + 1] = begins_[j] + transfers_.time[j];
    }
    Nanos next(std::numeric_limits<int64_t>::max());
    for (int g = end_; g >= 0; --g) {
      const std::vector<int>& back = EventsAt(g).back;
      for (auto t = back.rbegin(); t != back.rend(); ++t) {
        next = std::min(next, begins_[static_cast<size_t>(g)]) -
               CopyTime(link_.to_device, TransferAt(*t).bytes);
        StateAt(*t).latest = next;
      }
    }
  }

  bool RunGap(int g) {
    const Events& events = EventsAt(g);
    ready_.insert(ready_.end(), events.ready.begin(), events.ready.end());
    for (const int t : events.free) {
      if (StateAt(t).where == Where::kHere || StateAt(t).where == Where::kLeaving) Exceed(t);
    }
    StartOffloads(g);
    for (const int t : events.back) {
      if (StateAt(t).where != Where::kHere && StateAt(t).where != Where::kLeaving) Settle(t);
    }
    Leave(events.on_host);
    if (!Leave(events.back)) return false;
    FreeMemory(g);
    for (const int t : events.back) {
      if (StateAt(t).where == Where::kHost) StartPrefetch(t);
    }
    StartEarly(g);
    for (const int t : events.back) {
      if (StateAt(t).where == Where::kComing) EndPrefetch(t);
    }
    // Those that had to come back first.
    StartOffloads(g);
    FreeMemory(g);
    return Leave(events.on_host) && Fits(g, Bytes(0));
  }

  bool Fits(int g, Bytes more) const {
    return g == end_ || transfers_.need[static_cast<size_t>(g)] + beyond_need_ + more <= memory_;
  }

  void Exceed(int t) {
    StateAt(t).beyond_need = true;
    beyond_need_ += TransferAt(t).bytes;
  }
  void Settle(int t) {
    if (StateAt(t).beyond_need) beyond_need_ -= TransferAt(t).bytes;
    StateAt(t).beyond_need = false;
  }

  void StartOffloads(int g) {
    size_t kept = 0;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const int t = ready_[i];
      if (StateAt(t).where == Where::kHere && !MayStart(t, g)) ready_[kept++] = t;
    }
    ready_.resize(kept);
  }

  // Starts the offload, if it may.
  bool MayStart(int t, int g) {
    const TensorTransfer& transfer = TransferAt(t);
    for (const int before : transfer.after) {
      const State& s = StateAt(before);
      if (s.where != Where::kBack && TransferAt(before).returns) return false;
    }
    if (transfer.bytes > link_.host_memory - host_) FreeHost(g);
    if (transfer.bytes > link_.host_memory - host_) return false;
    host_ += transfer.bytes;
    leaving_.push_back(t);
    Start(Op::kOffloadStart, link_.to_host, Where::kLeaving, t);
    return true;
  }

  // Ends the prefetches that have ended.
  void FreeHost(int g) {
    const std::vector<int> coming = coming_;
    for (const int t : coming) {
      if (StateAt(t).end <= now_ && TransferAt(t).back_from <= g) EndPrefetch(t);
    }
  }

  // Ends the offloads of these; whether all have started.
  bool Leave(const std::vector<int>& transfers) {
    bool all = true;
    for (const int t : transfers) {
      if (StateAt(t).where == Where::kHere) all = false;
      if (StateAt(t).where == Where::kLeaving) EndOffload(t);
    }
    return all;
  }

  void FreeMemory(int g) {
    for (size_t i = 0; i < leaving_.size();) {
      const int t = leaving_[i];
      const bool is_free = TransferAt(t).free_from <= g;
      if (is_free && (StateAt(t).end <= now_ || !Fits(g, Bytes(0)))) {
        EndOffload(t);
      } else {
        ++i;
      }
    }
  }

  void EndOffload(int t) {
    End(Op::kOffloadWait, Where::kHost, t);
    Settle(t);
    leaving_.erase(std::find(leaving_.begin(), leaving_.end(), t));
    if (!TransferAt(t).returns) return;
    const auto later = [this](int a, int b) {
      return TransferAt(a).back_by < TransferAt(b).back_by;
    };
    on_host_.insert(std::upper_bound(on_host_.begin(), on_host_.end(), t, later), t);
  }

  void StartEarly(int g) {
    const auto is_far = [this, g](int, int t) { return TransferAt(t).back_by - g > kEarliest; };
    const std::vector<int> candidates(
        on_host_.begin(), std::upper_bound(on_host_.begin(), on_host_.end(), 0, is_far));
    for (const int t : candidates) {
      const bool just_in_time = rules_.prefetch == PrefetchRule::kJustInTime;
      if (just_in_time && g < end_ && begins_[static_cast<size_t>(g) + 1] <= StateAt(t).latest) {
        return;
      }
      if (HasMemory(t, g)) {
        const int back_by = TransferAt(t).back_by;
        for (int j = g; j < back_by; ++j) early_[static_cast<size_t>(j)] += TransferAt(t).bytes;
        Exceed(t);
        StartPrefetch(t);
      } else if (rules_.prefetch == PrefetchRule::kInOrder) {
        return;
      }
    }
  }

  // For the prefetch to start at the gap, all the time until it is needed.
  bool HasMemory(int t, int g) {
    const Bytes bytes = TransferAt(t).bytes;
    if (StateAt(t).prefetch_from > g || !Fits(g, bytes)) return false;
    for (int j = TransferAt(t).back_by - 1; j >= g; --j) {
      const size_t at = static_cast<size_t>(j);
      if (transfers_.need[at] + early_[at] + bytes <= memory_) continue;
      StateAt(t).prefetch_from = j + 1;
      return false;
    }
    return true;
  }

  void StartPrefetch(int t) {
    on_host_.erase(std::find(on_host_.begin(), on_host_.end(), t));
    coming_.push_back(t);
    Start(Op::kPrefetchStart, link_.to_device, Where::kComing, t);
  }

  void EndPrefetch(int t) {
    End(Op::kPrefetchWait, Where::kBack, t);
    host_ -= TransferAt(t).bytes;
    coming_.erase(std::find(coming_.begin(), coming_.end(), t));
  }

  void Start(Op op, const CopyCost& cost, Where where, int t) {
    Nanos& channel = channel_[link_.full_duplex && op == Op::kPrefetchStart ? 1 : 0];
    channel = std::max(now_, channel) + CopyTime(cost, TransferAt(t).bytes);
    StateAt(t).end = channel;
    Append(op, where, t);
  }

  void End(Op op, Where where, int t) {
    now_ = std::max(now_, StateAt(t).end);
    Append(op, where, t);
  }

  void Append(Op op, Where where, int t) {
    Instruction i = TransferAt(t).tensor;
    i.op = op;
    i.stream = StreamOf(op);
    schedule_.push_back(i);
    StateAt(t).where = where;
  }

  const TransferSet& transfers_;
  const TransferModel& link_;
  const Bytes memory_;
  const OverlapRules rules_;
  const int end_;  // the last gap
  std::vector<Events> at_;
  std::vector<State> state_;
  std::vector<Bytes> early_;  // by instruction, of the early prefetches before they are needed
  std::vector<Nanos> begins_;
  Schedule schedule_;
  Nanos now_;
  Nanos channel_[2];
  Bytes host_;
  Bytes beyond_need_;         // on the device now, beyond need
  std::vector<int> ready_;    // to start
  std::vector<int> leaving_;  // in the order of their starts
  std::vector<int> on_host_;  // in the order in which they are needed
  std::vector<int> coming_;
};

}  // namespace

std::optional<Schedule> ReplayTransfers(const TransferSet& transfers,
                                        const std::vector<bool>& stays, const TransferModel& link,
                                        Bytes memory, OverlapRules rules) {
  return OverlapReplay(transfers, stays, link, memory, rules).Run();
}

namespace {

constexpr int kRounds = 3;
// Instructions of all schedules that are looked at one change after the other.
constexpr int64_t kWork = int64_t{1} << 20;
// The same once a deadline has passed: some 20 ms.
constexpr int64_t kLateWork = int64_t{1} << 16;

constexpr OverlapRules kRules[] = {
    {OffloadRule::kSoon, PrefetchRule::kInOrder},
    {OffloadRule::kSoon, PrefetchRule::kAsMemoryAllows},
    {OffloadRule::kSoon, PrefetchRule::kJustInTime},
    {OffloadRule::kLate, PrefetchRule::kInOrder},
    {OffloadRule::kLate, PrefetchRule::kAsMemoryAllows},
    {OffloadRule::kLate, PrefetchRule::kJustInTime},
};

class Overlapping {
 public:
  Overlapping(const Instance& instance, const Schedule& schedule, Bytes memory, Nanos makespan,
              const StopToken* stop)
      : evaluator_(instance), memory_(memory), stop_(stop), best_(schedule), makespan_(makespan) {}

  Schedule Run() {
    for (int round = 0; round < kRounds && Round(); ++round) {
    }
    return std::move(best_);
  }

 private:
  // Whether it became faster, and there is time for more.
  bool Round() {
    const Nanos before = makespan_;
    if (FindTrips()) DropTrips();
    if (Stopped() || !FindTrips()) return false;
    TryRules();
    StayTogether();
    StaySingly();
    return makespan_ < before && HasTime();
  }

  bool FindTrips() {
    base_ = best_;
    absl::StatusOr<TransferSet> transfers = FindTransfers(evaluator_.instance(), base_);
    if (!transfers.ok()) return false;
    transfers_ = *std::move(transfers);
    stays_.assign(transfers_.transfers.size(), false);
    return true;
  }

  // What becomes of a transfer.
  enum class Fate { kTransfer, kDrop, kStay };

  // Tensors that leave are dropped instead where that is valid: others have what is read of them,
  // as saved tensors have that of the plain output, perhaps if these stay.
  void DropTrips() {
    std::vector<Fate> fates(transfers_.transfers.size(), Fate::kTransfer);
    for (size_t t = 0; t < fates.size(); ++t) {
      if (fates[t] != Fate::kTransfer || !MayDrop(transfers_.transfers[t])) continue;
      fates[t] = Fate::kDrop;
      if (TryFates(fates)) continue;
      std::vector<Fate> saved_stays = fates;
      for (size_t u = 0; u < fates.size(); ++u) {
        if (fates[u] == Fate::kTransfer && IsSavedOf(u, t)) saved_stays[u] = Fate::kStay;
      }
      if (saved_stays != fates && TryFates(saved_stays)) {
        fates = std::move(saved_stays);
      } else {
        fates[t] = Fate::kTransfer;
      }
    }
  }

  // Whether there may be no need of it: nothing brings it back, or it is a plain output where the
  // stage's saved tensors hold the same.
  bool MayDrop(const TensorTransfer& transfer) const {
    if (transfer.tensor.part != 0) return false;
    if (!transfer.returns) return true;
    if (transfer.tensor.tensor == TensorKind::kSaved) return false;
    for (int j = transfer.back_by; j-- > 0;) {
      const Instruction& i = transfers_.compute[static_cast<size_t>(j)];
      if (i.stage != transfer.tensor.stage) continue;
      if (i.op == Op::kForwardSave) return true;
      const bool drops_saved = i.op == Op::kDiscard && i.tensor == TensorKind::kSaved;
      if (drops_saved || i.op == Op::kBackward || i.op == Op::kDropSavedKeepOutput) return false;
    }
    return false;
  }

  // Whether transfer u is of the saved tensors of the stage that makes the activation of transfer t.
  bool IsSavedOf(size_t u, size_t t) const {
    const Instruction& saved = transfers_.transfers[u].tensor;
    const Instruction& plain = transfers_.transfers[t].tensor;
    return plain.tensor == TensorKind::kActivation && saved.tensor == TensorKind::kSaved &&
           saved.stage == plain.stage;
  }

  // Fewer copies leave more to gain: no faster is enough.
  bool TryFates(const std::vector<Fate>& fates) {
    return HasTime() && Offer(WithFates(fates), makespan_ + Nanos(1));
  }

  Schedule WithFates(const std::vector<Fate>& fates) const {
    std::vector<bool> is_left_out(base_.size(), false);
    std::vector<bool> is_discard(base_.size(), false);
    std::vector<bool> is_on_host(transfers_.compute.size(), false);  // what is dropped there
    for (size_t t = 0; t < fates.size(); ++t) {
      if (fates[t] == Fate::kTransfer) continue;
      const TensorTransfer& transfer = transfers_.transfers[t];
      for (const size_t i : transfer.copies) is_left_out[i] = true;
      if (fates[t] == Fate::kStay) continue;
      is_discard[transfer.copies[1]] = true;
      if (static_cast<size_t>(transfer.dropped) < is_on_host.size()) {
        is_on_host[static_cast<size_t>(transfer.dropped)] = true;
      }
    }
    Schedule schedule;
    size_t next = 0;
    for (size_t i = 0; i < base_.size(); ++i) {
      const bool on_host = !IsTransfer(base_[i].op) && is_on_host[next++];
      if (is_discard[i]) schedule.push_back(Discard(base_[i].tensor, base_[i].stage));
      if (!is_left_out[i] && !on_host) schedule.push_back(base_[i]);
    }
    return schedule;
  }

  bool TryRules() {
    bool faster = false;
    for (const OverlapRules& rules : kRules) {
      if (Stopped()) break;
      work_ += static_cast<int64_t>(base_.size());
      std::optional<Schedule> next =
          ReplayTransfers(transfers_, stays_, *evaluator_.instance().link(), memory_, rules);
      if (next && Offer(*std::move(next), makespan_)) faster = true;
    }
    return faster;
  }

  // Takes the schedule if it is valid, fits and is faster than `limit`.
  bool Offer(Schedule schedule, Nanos limit) {
    const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
    work_ += static_cast<int64_t>(schedule.size());
    if (!simulation.ok() || simulation->peak > memory_ || simulation->makespan >= limit) {
      return false;
    }
    makespan_ = simulation->makespan;
    best_ = std::move(schedule);
    return true;
  }

  bool HasTime() { return work_ < kWork && !Stopped(); }

  // Costs as much as a clock read.
  bool Stopped() {
    if (stop_ == nullptr) return false;
    if (!most_late_work_ && stop_->deadline_passed()) most_late_work_ = work_ + kLateWork;
    return stop_->stop_requested() || (most_late_work_ && work_ >= *most_late_work_);
  }

  // As many as memory allows.
  void StayTogether() {
    for (const size_t t : BySize()) {
      if (MayStay(t)) Stay(t, true);
    }
    if (TryRules()) return;
    for (size_t t = 0; t < stays_.size(); ++t) {
      if (stays_[t]) Stay(t, false);
    }
  }

  void StaySingly() {
    for (const size_t t : BySize()) {
      if (!HasTime()) return;
      if (stays_[t] || !MayStay(t)) continue;
      Stay(t, true);
      if (!TryRules()) Stay(t, false);
    }
  }

  // Those first that take the most of the link.
  std::vector<size_t> BySize() const {
    std::vector<size_t> order(transfers_.transfers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return transfers_.transfers[a].bytes > transfers_.transfers[b].bytes;
    });
    return order;
  }

  bool MayStay(size_t t) const {
    const TensorTransfer& transfer = transfers_.transfers[t];
    if (!transfer.returns || transfer.back_from > 0) return false;
    const auto begin = transfers_.need.begin();
    return std::all_of(begin + transfer.free_from, begin + transfer.back_by,
                       [&](Bytes need) { return need + transfer.bytes <= memory_; });
  }

  void Stay(size_t t, bool stays) {
    const TensorTransfer& transfer = transfers_.transfers[t];
    stays_[t] = stays;
    for (int j = transfer.free_from; j < transfer.back_by; ++j) {
      Bytes& need = transfers_.need[static_cast<size_t>(j)];
      need = stays ? need + transfer.bytes : need - transfer.bytes;
    }
  }

  const Evaluator evaluator_;
  const Bytes memory_;
  const StopToken* stop_;
  Schedule best_;
  Nanos makespan_;
  int64_t work_ = 0;
  std::optional<int64_t> most_late_work_;  // once a deadline has passed
  Schedule base_;                          // of which the transfers are
  TransferSet transfers_;
  std::vector<bool> stays_;
};

}  // namespace

Schedule OverlapTransfers(const Instance& instance, const Schedule& schedule, Bytes memory,
                          const StopToken* stop) {
  const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(schedule);
  if (!simulation.ok() || simulation->peak > memory || simulation->idle_time == Nanos(0)) {
    return schedule;
  }
  return Overlapping(instance, schedule, memory, simulation->makespan, stop).Run();
}

}  // namespace stowage
