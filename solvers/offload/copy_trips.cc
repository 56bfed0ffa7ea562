#include "solvers/offload/copy_trips.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "solvers/plan/simulate.h"

namespace stowage {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();
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
    int from = kNever;
    int to = kNever;
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
    trip.away_by = trip.back_by = trip.dropped = kNever;
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

absl::StatusOr<CopyTrips> FindCopyTrips(const Chain& chain, const Schedule& schedule,
                                        const TransferModel& transfers) {
  absl::Status status = CheckNoCommunication(schedule);
  if (!status.ok()) return status;
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> simulation = Simulate(chain, schedule, transfers, &timeline);
  if (!simulation.ok()) return simulation.status();
  return TripFinder(chain, schedule, timeline).Run();
}

}  // namespace stowage
