#include "solvers/offload/loosen.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "solvers/offload/copy_trips.h"
#include "solvers/offload/trip_replay.h"
#include "solvers/plan/simulate.h"

namespace stowage {
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
  Loosening(const Chain& chain, const Schedule& schedule, const TransferModel& transfers,
            Bytes memory, Nanos makespan, const StopToken* stop)
      : chain_(chain),
        transfers_(transfers),
        memory_(memory),
        stop_(stop),
        best_(schedule),
        makespan_(makespan) {}

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
    absl::StatusOr<CopyTrips> trips = FindCopyTrips(chain_, base_, transfers_);
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
      std::optional<Schedule> next = ReplayTrips(trips_, stays_, transfers_, memory_, rules);
      if (next && Offer(*std::move(next), makespan_)) faster = true;
    }
    return faster;
  }

  // Takes the schedule if it is valid, fits and is faster than `limit`.
  bool Offer(Schedule schedule, Nanos limit) {
    const absl::StatusOr<Simulation> simulation = Simulate(chain_, schedule, transfers_);
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

  const Chain& chain_;
  const TransferModel& transfers_;
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

Schedule Loosen(const Chain& chain, const Schedule& schedule, const TransferModel& transfers,
                Bytes memory, const StopToken* stop) {
  const absl::StatusOr<Simulation> simulation = Simulate(chain, schedule, transfers);
  if (!simulation.ok() || simulation->peak > memory || simulation->idle_time == Nanos(0)) {
    return schedule;
  }
  Loosening loosening(chain, schedule, transfers, memory, simulation->makespan, stop);
  for (int round = 0; round < kRounds && loosening.Round(); ++round) {
  }
  return loosening.Take();
}

}  // namespace stowage
