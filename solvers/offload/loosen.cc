#include "solvers/offload/loosen.h"

#include <algorithm>
#include <cstddef>
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
            Bytes memory, Nanos makespan)
      : chain_(chain),
        transfers_(transfers),
        memory_(memory),
        best_(schedule),
        makespan_(makespan) {}

  // Whether it became faster.
  bool Round() {
    absl::StatusOr<CopyTrips> trips = FindCopyTrips(chain_, best_, transfers_);
    if (!trips.ok()) return false;
    trips_ = *std::move(trips);
    stays_.assign(trips_.trips.size(), false);
    const bool faster = TryRules();
    return TryStays() || faster;
  }

  Schedule Take() { return std::move(best_); }

 private:
  bool TryRules() {
    bool faster = false;
    for (const TripRules& rules : kRules) faster = Try(rules) || faster;
    return faster;
  }

  bool Try(TripRules rules) {
    std::optional<Schedule> next = ReplayTrips(trips_, stays_, transfers_, memory_, rules);
    if (!next) return false;
    const absl::StatusOr<Simulation> simulation = Simulate(chain_, *next, transfers_);
    if (!simulation.ok() || simulation->peak > memory_ || simulation->makespan >= makespan_) {
      return false;
    }
    makespan_ = simulation->makespan;
    best_ = *std::move(next);
    return true;
  }

  // Trip by trip, those first that take the most of the link.
  bool TryStays() {
    std::vector<size_t> order(trips_.trips.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return trips_.trips[a].bytes > trips_.trips[b].bytes;
    });
    bool faster = false;
    for (const size_t t : order) {
      if (!MayStay(t)) continue;
      Stay(t, true);
      if (TryRules()) {
        faster = true;
      } else {
        Stay(t, false);
      }
    }
    return faster;
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
  Schedule best_;
  Nanos makespan_;
  CopyTrips trips_;
  std::vector<bool> stays_;
};

}  // namespace

Schedule Loosen(const Chain& chain, const Schedule& schedule, const TransferModel& transfers,
                Bytes memory) {
  const absl::StatusOr<Simulation> simulation = Simulate(chain, schedule, transfers);
  if (!simulation.ok() || simulation->peak > memory || simulation->idle_time == Nanos(0)) {
    return schedule;
  }
  Loosening loosening(chain, schedule, transfers, memory, simulation->makespan);
  for (int round = 0; round < kRounds && loosening.Round(); ++round) {
  }
  return loosening.Take();
}

}  // namespace stowage
