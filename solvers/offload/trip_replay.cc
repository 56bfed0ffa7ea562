#include "solvers/offload/trip_replay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace stowage {
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

}  // namespace stowage
