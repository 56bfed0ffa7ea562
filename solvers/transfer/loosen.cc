#include "solvers/transfer/loosen.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

constexpr int kNoStep = std::numeric_limits<int>::max();
constexpr int kNone = -1;

class TripFinder {
 public:
  TripFinder(const Chain& chain, const Schedule& schedule,
             const std::vector<TimelinePoint>& timeline)
      : chain_(chain), schedule_(schedule), timeline_(timeline) {
    const int last = chain.length() + 1;
    int items = 2 * (last + 1);
    first_part_.push_back(items);
    for (int l = 1; l <= last; ++l) first_part_.push_back(items += chain.stage(l).parts());
    items_.resize(static_cast<size_t>(items));
  }

  CopyTrips Run() {
    for (size_t i = 0; i < schedule_.size(); ++i) {
      if (IsTransfer(schedule_[i].op)) {
        Transfer(schedule_[i]);
        TripOf(At(ItemOf(schedule_[i]))).copies.push_back(i);
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
    int trip = kNone;       // the last one since it was made
    bool is_needed = true;  // since it came back
    int made = 0;           // the gap after
    int read = 0;           // the gap after the last time
  };

  // When a trip's tensor was away.
  struct Away {
    int from = kNoStep;
    int to = kNoStep;
  };

  int gap() const { return static_cast<int>(result_.compute.size()); }

  int Plain(int l) const { return 2 * l; }
  int Saved(int l) const { return 2 * l + 1; }
  int PartsBegin(int l) const { return first_part_[static_cast<size_t>(l) - 1]; }
  int PartsEnd(int l) const { return first_part_[static_cast<size_t>(l)]; }
  Item& At(int item) { return items_[static_cast<size_t>(item)]; }
  CopyTrip& TripOf(const Item& item) { return result_.trips[static_cast<size_t>(item.trip)]; }

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
        away_[static_cast<size_t>(item.trip)].from = gap();
        return;
      case Op::kPrefetchStart:
        item.where = Where::kComing;
        away_[static_cast<size_t>(item.trip)].to = gap();
        return;
      default:
        item.where = Where::kDevice;
        item.is_needed = false;
        TripOf(item).returns = true;
    }
  }

  void Start(const Instruction& i, Item* item) {
    CopyTrip trip;
    trip.tensor = i;
    trip.made = item->made;
    trip.free_from = std::max(item->made, item->read);
    trip.away_by = trip.back_by = trip.dropped = kNoStep;
    const auto follow = [&](Item* before) {
      if (before->trip == kNone) return;
      Need(before, gap());
      trip.after.push_back(before->trip);
      trip.free_from = std::max(trip.free_from, TripOf(*before).back_by);
    };
    follow(item);
    if (i.tensor == TensorKind::kSaved) {
      // As a whole and in parts it is the same tensor.
      if (i.part != 0) follow(&At(Saved(i.stage)));
      for (int k = PartsBegin(i.stage); i.part == 0 && k < PartsEnd(i.stage); ++k) follow(&At(k));
    }
    trip.bytes = i.part != 0                      ? chain_.stage(i.stage).part(i.part)
                 : i.tensor == TensorKind::kSaved ? chain_.stage(i.stage).saved
                                                  : chain_.activation(i.stage);
    item->where = Where::kLeaving;
    item->trip = static_cast<int>(result_.trips.size());
    result_.trips.push_back(std::move(trip));
    away_.emplace_back();
  }

  void Compute(size_t i) {
    const int l = schedule_[i].stage;
    switch (schedule_[i].op) {
      case Op::kForwardKeepAll:
        ReadOutput(l - 1);
        ChangeSaved(l, /*ends=*/true);
        break;
      case Op::kForwardKeepInput:
        ReadOutput(l - 1);
        Change(Plain(l), /*ends=*/true);
        break;
      case Op::kForwardKeepNothing:
        Change(Plain(l - 1), /*ends=*/true);
        Change(Plain(l), /*ends=*/true);
        break;
      case Op::kBackward:
        ReadOutput(l - 1);
        ChangeSaved(l, /*ends=*/true);
        // It drops its input only if it is there.
        Change(Plain(l - 1), /*ends=*/false);
        break;
      case Op::kReduce:
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
    if (item.where == Where::kLeaving) TripOf(item).free_from = item.read;
  }

  // The next instruction makes it or drops it; on the host, if that ends its trip.
  void Change(int number, bool ends) {
    Item& item = At(number);
    if (item.where == Where::kDevice) Need(&item, gap());
    if (item.where != Where::kDevice) {
      CopyTrip& trip = TripOf(item);
      trip.away_by = std::min(trip.away_by, gap());
      trip.back_from = gap() + 1;
      if (!ends) return;
      trip.dropped = gap();
      item.where = Where::kDevice;
    }
    item.trip = kNone;
    item.made = item.read = gap() + 1;
  }

  // A tensor that came back is needed from this gap on.
  void Need(Item* item, int g) {
    if (item->is_needed) return;
    item->is_needed = true;
    TripOf(*item).back_by = g;
  }

  void LowerNeeds() {
    std::vector<Bytes> less(result_.need.size() + 1);
    const int end = gap();
    const auto lower = [&](int from, int to, Bytes bytes) {
      if (from >= std::min(to, end)) return;
      less[static_cast<size_t>(from)] += bytes;
      less[static_cast<size_t>(std::min(to, end))] -= bytes;
    };
    for (size_t t = 0; t < result_.trips.size(); ++t) {
      const CopyTrip& trip = result_.trips[t];
      lower(trip.free_from, away_[t].from, trip.bytes);
      lower(away_[t].to, trip.back_by, trip.bytes);
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
  std::vector<Away> away_;  // by trip
  CopyTrips result_;
};

}  // namespace

absl::StatusOr<CopyTrips> FindCopyTrips(const Instance& instance, const Schedule& schedule) {
  absl::Status status = CheckNoCommunication(schedule);
  if (!status.ok()) return status;
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(schedule, &timeline);
  if (!simulation.ok()) return simulation.status();
  return TripFinder(instance.chain(), schedule, timeline).Run();
}

namespace {

// No prefetch starts more instructions than that before it has to: that is soon enough, and keeps
// the cost of looking for room linear.
constexpr int kEarliest = 512;

class TripReplay {
 public:
  TripReplay(const CopyTrips& trips, const std::vector<bool>& stays, const TransferModel& transfers,
             Bytes memory, TripRules rules)
      : trips_(trips),
        transfers_(transfers),
        memory_(memory),
        rules_(rules),
        end_(static_cast<int>(trips.compute.size())),
        at_(trips.compute.size() + 1),
        state_(trips.trips.size()),
        early_(trips.compute.size() + 1) {
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
      schedule_.push_back(trips_.compute[static_cast<size_t>(g)]);
      now_ += trips_.time[static_cast<size_t>(g)];
      for (const int t : at_[static_cast<size_t>(g)].dropped) host_ -= TripAt(t).bytes;
    }
    return std::move(schedule_);
  }

 private:
  enum class Where : uint8_t { kHere, kLeaving, kHost, kComing, kBack };

  struct State {
    Where where = Where::kHere;
    bool in_excess = false;  // takes room that need does not count
    Nanos end;               // of its last copy
    Nanos latest;            // when its prefetch has to start, if compute never waits
    int room_from = 0;       // no early prefetch before this gap
  };

  // What happens at a gap; trips by number.
  struct Events {
    std::vector<int> ready, free, away, back, dropped;
  };

  const CopyTrip& TripAt(int t) const { return trips_.trips[static_cast<size_t>(t)]; }
  State& StateAt(int t) { return state_[static_cast<size_t>(t)]; }
  Events& EventsAt(int g) { return at_[static_cast<size_t>(g)]; }

  void Enter(int t) {
    const CopyTrip& trip = TripAt(t);
    const int ready = rules_.offload == OffloadRule::kSoon ? trip.made : trip.free_from;
    EventsAt(ready).ready.push_back(t);
    EventsAt(trip.free_from).free.push_back(t);
    EventsAt(std::min(trip.away_by, end_)).away.push_back(t);
    if (trip.returns) EventsAt(trip.back_by).back.push_back(t);
    if (trip.dropped < end_) EventsAt(trip.dropped).dropped.push_back(t);
  }

  // From the last one needed to the first, each before the one after it.
  void SetLatestStarts() {
    begins_.resize(trips_.compute.size() + 1);
    for (size_t j = 0; j < trips_.compute.size(); ++j) {
      begins_[j + 1] = begins_[j] + trips_.time[j];
    }
    Nanos next(std::numeric_limits<int64_t>::max());
    for (int g = end_; g >= 0; --g) {
      const std::vector<int>& back = EventsAt(g).back;
      for (auto t = back.rbegin(); t != back.rend(); ++t) {
        next = std::min(next, begins_[static_cast<size_t>(g)]) -
               CopyTime(transfers_.to_device, TripAt(*t).bytes);
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
    Leave(events.away);
    if (!Leave(events.back)) return false;
    MakeRoom(g);
    for (const int t : events.back) {
      if (StateAt(t).where == Where::kHost) StartPrefetch(t);
    }
    StartEarly(g);
    for (const int t : events.back) {
      if (StateAt(t).where == Where::kComing) EndPrefetch(t);
    }
    // Those that had to come back first.
    StartOffloads(g);
    MakeRoom(g);
    return Leave(events.away) && Fits(g, Bytes(0));
  }

  bool Fits(int g, Bytes more) const {
    return g == end_ || trips_.need[static_cast<size_t>(g)] + excess_ + more <= memory_;
  }

  void Exceed(int t) {
    StateAt(t).in_excess = true;
    excess_ += TripAt(t).bytes;
  }
  void Settle(int t) {
    if (StateAt(t).in_excess) excess_ -= TripAt(t).bytes;
    StateAt(t).in_excess = false;
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
    const CopyTrip& trip = TripAt(t);
    for (const int before : trip.after) {
      const State& s = StateAt(before);
      if (s.where != Where::kBack && TripAt(before).returns) return false;
    }
    if (trip.bytes > transfers_.host_memory - host_) FreeHost(g);
    if (trip.bytes > transfers_.host_memory - host_) return false;
    host_ += trip.bytes;
    leaving_.push_back(t);
    Start(Op::kOffloadStart, transfers_.to_host, Where::kLeaving, t);
    return true;
  }

  // Ends the prefetches that have ended.
  void FreeHost(int g) {
    const std::vector<int> coming = coming_;
    for (const int t : coming) {
      if (StateAt(t).end <= now_ && TripAt(t).back_from <= g) EndPrefetch(t);
    }
  }

  // Ends the offloads of these; whether all have started.
  bool Leave(const std::vector<int>& trips) {
    bool all = true;
    for (const int t : trips) {
      if (StateAt(t).where == Where::kHere) all = false;
      if (StateAt(t).where == Where::kLeaving) EndOffload(t);
    }
    return all;
  }

  void MakeRoom(int g) {
    for (size_t i = 0; i < leaving_.size();) {
      const int t = leaving_[i];
      const bool is_free = TripAt(t).free_from <= g;
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
    if (!TripAt(t).returns) return;
    const auto later = [this](int a, int b) { return TripAt(a).back_by < TripAt(b).back_by; };
    on_host_.insert(std::upper_bound(on_host_.begin(), on_host_.end(), t, later), t);
  }

  void StartEarly(int g) {
    const auto is_far = [this, g](int, int t) { return TripAt(t).back_by - g > kEarliest; };
    const std::vector<int> candidates(
        on_host_.begin(), std::upper_bound(on_host_.begin(), on_host_.end(), 0, is_far));
    for (const int t : candidates) {
      const bool just_in_time = rules_.prefetch == PrefetchRule::kJustInTime;
      if (just_in_time && g < end_ && begins_[static_cast<size_t>(g) + 1] <= StateAt(t).latest) {
        return;
      }
      if (HasRoom(t, g)) {
        const int back_by = TripAt(t).back_by;
        for (int j = g; j < back_by; ++j) early_[static_cast<size_t>(j)] += TripAt(t).bytes;
        Exceed(t);
        StartPrefetch(t);
      } else if (rules_.prefetch == PrefetchRule::kInOrder) {
        return;
      }
    }
  }

  // For the prefetch to start at the gap, all the time until it is needed.
  bool HasRoom(int t, int g) {
    const Bytes bytes = TripAt(t).bytes;
    if (StateAt(t).room_from > g || !Fits(g, bytes)) return false;
    for (int j = TripAt(t).back_by - 1; j >= g; --j) {
      const size_t at = static_cast<size_t>(j);
      if (trips_.need[at] + early_[at] + bytes <= memory_) continue;
      StateAt(t).room_from = j + 1;
      return false;
    }
    return true;
  }

  void StartPrefetch(int t) {
    on_host_.erase(std::find(on_host_.begin(), on_host_.end(), t));
    coming_.push_back(t);
    Start(Op::kPrefetchStart, transfers_.to_device, Where::kComing, t);
  }

  void EndPrefetch(int t) {
    End(Op::kPrefetchWait, Where::kBack, t);
    host_ -= TripAt(t).bytes;
    coming_.erase(std::find(coming_.begin(), coming_.end(), t));
  }

  void Start(Op op, const CopyCost& cost, Where where, int t) {
    Nanos& channel = channel_[transfers_.full_duplex && op == Op::kPrefetchStart ? 1 : 0];
    channel = std::max(now_, channel) + CopyTime(cost, TripAt(t).bytes);
    StateAt(t).end = channel;
    Append(op, where, t);
  }

  void End(Op op, Where where, int t) {
    now_ = std::max(now_, StateAt(t).end);
    Append(op, where, t);
  }

  void Append(Op op, Where where, int t) {
    Instruction i = TripAt(t).tensor;
    i.op = op;
    i.stream = StreamOf(op);
    schedule_.push_back(i);
    StateAt(t).where = where;
  }

  const CopyTrips& trips_;
  const TransferModel& transfers_;
  const Bytes memory_;
  const TripRules rules_;
  const int end_;  // the last gap
  std::vector<Events> at_;
  std::vector<State> state_;
  std::vector<Bytes> early_;  // by instruction, of the early prefetches before they are needed
  std::vector<Nanos> begins_;
  Schedule schedule_;
  Nanos now_;
  Nanos channel_[2];
  Bytes host_;
  Bytes excess_;              // on the device now, beyond need
  std::vector<int> ready_;    // to start
  std::vector<int> leaving_;  // in the order of their starts
  std::vector<int> on_host_;  // in the order in which they are needed
  std::vector<int> coming_;
};

}  // namespace

std::optional<Schedule> ReplayTrips(const CopyTrips& trips, const std::vector<bool>& stays,
                                    const TransferModel& transfers, Bytes memory, TripRules rules) {
  return TripReplay(trips, stays, transfers, memory, rules).Run();
}

namespace {

constexpr int kRounds = 3;
// Instructions of all schedules that are looked at one change after the other.
constexpr int64_t kWork = int64_t{1} << 20;
// The same once a deadline has passed: some 20 ms.
constexpr int64_t kLateWork = int64_t{1} << 16;

constexpr TripRules kRules[] = {
    {OffloadRule::kSoon, PrefetchRule::kInOrder},
    {OffloadRule::kSoon, PrefetchRule::kAsRoomAllows},
    {OffloadRule::kSoon, PrefetchRule::kJustInTime},
    {OffloadRule::kLate, PrefetchRule::kInOrder},
    {OffloadRule::kLate, PrefetchRule::kAsRoomAllows},
    {OffloadRule::kLate, PrefetchRule::kJustInTime},
};

class Loosening {
 public:
  Loosening(const Instance& instance, const Schedule& schedule, Bytes memory, Nanos makespan,
            const StopToken* stop)
      : evaluator_(instance), memory_(memory), stop_(stop), best_(schedule), makespan_(makespan) {}

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

  Schedule Take() { return std::move(best_); }

 private:
  bool FindTrips() {
    base_ = best_;
    absl::StatusOr<CopyTrips> trips = FindCopyTrips(evaluator_.instance(), base_);
    if (!trips.ok()) return false;
    trips_ = *std::move(trips);
    stays_.assign(trips_.trips.size(), false);
    return true;
  }

  // What becomes of a trip.
  enum class Fate { kTrip, kDrop, kStay };

  // Tensors that leave are dropped instead where that is valid: others have what is read of them,
  // as saved tensors have that of the plain output, perhaps if these stay.
  void DropTrips() {
    std::vector<Fate> fates(trips_.trips.size(), Fate::kTrip);
    for (size_t t = 0; t < fates.size(); ++t) {
      if (fates[t] != Fate::kTrip || !MayDrop(trips_.trips[t])) continue;
      fates[t] = Fate::kDrop;
      if (TryFates(fates)) continue;
      std::vector<Fate> saved_stays = fates;
      for (size_t u = 0; u < fates.size(); ++u) {
        if (fates[u] == Fate::kTrip && IsSavedOf(u, t)) saved_stays[u] = Fate::kStay;
      }
      if (saved_stays != fates && TryFates(saved_stays)) {
        fates = std::move(saved_stays);
      } else {
        fates[t] = Fate::kTrip;
      }
    }
  }

  // Whether there may be no need of it: nothing brings it back, or it is a plain output where the
  // stage's saved tensors hold the same.
  bool MayDrop(const CopyTrip& trip) const {
    if (trip.tensor.part != 0) return false;
    if (!trip.returns) return true;
    if (trip.tensor.tensor == TensorKind::kSaved) return false;
    for (int j = trip.back_by; j-- > 0;) {
      const Instruction& i = trips_.compute[static_cast<size_t>(j)];
      if (i.stage != trip.tensor.stage) continue;
      if (i.op == Op::kForwardKeepAll) return true;
      const bool drops_saved = i.op == Op::kDiscard && i.tensor == TensorKind::kSaved;
      if (drops_saved || i.op == Op::kBackward || i.op == Op::kReduce) return false;
    }
    return false;
  }

  // Whether trip u is of the saved tensors of the stage that makes the activation of trip t.
  bool IsSavedOf(size_t u, size_t t) const {
    const Instruction& saved = trips_.trips[u].tensor;
    const Instruction& plain = trips_.trips[t].tensor;
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
    std::vector<bool> is_on_host(trips_.compute.size(), false);  // what is dropped there
    for (size_t t = 0; t < fates.size(); ++t) {
      if (fates[t] == Fate::kTrip) continue;
      const CopyTrip& trip = trips_.trips[t];
      for (const size_t i : trip.copies) is_left_out[i] = true;
      if (fates[t] == Fate::kStay) continue;
      is_discard[trip.copies[1]] = true;
      if (static_cast<size_t>(trip.dropped) < is_on_host.size()) {
        is_on_host[static_cast<size_t>(trip.dropped)] = true;
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
    for (const TripRules& rules : kRules) {
      if (Stopped()) break;
      work_ += static_cast<int64_t>(base_.size());
      std::optional<Schedule> next =
          ReplayTrips(trips_, stays_, *evaluator_.instance().link(), memory_, rules);
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

  // As many as have room.
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
    std::vector<size_t> order(trips_.trips.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return trips_.trips[a].bytes > trips_.trips[b].bytes;
    });
    return order;
  }

  bool MayStay(size_t t) const {
    const CopyTrip& trip = trips_.trips[t];
    if (!trip.returns || trip.back_from > 0) return false;
    const auto begin = trips_.need.begin();
    return std::all_of(begin + trip.free_from, begin + trip.back_by,
                       [&](Bytes need) { return need + trip.bytes <= memory_; });
  }

  void Stay(size_t t, bool stays) {
    const CopyTrip& trip = trips_.trips[t];
    stays_[t] = stays;
    for (int j = trip.free_from; j < trip.back_by; ++j) {
      Bytes& need = trips_.need[static_cast<size_t>(j)];
      need = stays ? need + trip.bytes : need - trip.bytes;
    }
  }

  const Evaluator evaluator_;
  const Bytes memory_;
  const StopToken* stop_;
  Schedule best_;
  Nanos makespan_;
  int64_t work_ = 0;
  std::optional<int64_t> most_late_work_;  // once a deadline has passed
  Schedule base_;                          // of which the trips are
  CopyTrips trips_;
  std::vector<bool> stays_;
};

}  // namespace

Schedule Loosen(const Instance& instance, const Schedule& schedule, Bytes memory,
                const StopToken* stop) {
  const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(schedule);
  if (!simulation.ok() || simulation->peak > memory || simulation->idle_time == Nanos(0)) {
    return schedule;
  }
  Loosening loosening(instance, schedule, memory, simulation->makespan, stop);
  for (int round = 0; round < kRounds && loosening.Round(); ++round) {
  }
  return loosening.Take();
}

}  // namespace stowage
