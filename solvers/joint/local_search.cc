#include "solvers/joint/local_search.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "solvers/joint/outline_schedule.h"

namespace stowage {
namespace {

constexpr char kExplanation[] = "parts kept, recomputed and offloaded together, changed locally";

class NeighbourVisit {
 public:
  NeighbourVisit(const Outline& outline, const SegmentCosts& costs,
                 absl::FunctionRef<bool(const Outline&)> visit)
      : outline_(outline), costs_(costs), visit_(visit) {}

  void Run() {
    for (size_t p = 0; p < outline_.size() && more_; ++p) {
      ChangeRoom(p);
      FlipInput(p);
      Split(p);
      if (p + 1 < outline_.size()) JoinWithNext(p);
      if (p + 2 < outline_.size()) MoveBoundary(p);
    }
  }

 private:
  static bool Runs(const OutlinePart& part) { return !part.saved || part.first < part.last; }

  // Replaces `count` parts from p on.
  void Replace(size_t p, size_t count, const std::vector<OutlinePart>& parts) {
    if (!more_) return;
    Outline changed(outline_.begin(), outline_.begin() + static_cast<std::ptrdiff_t>(p));
    changed.insert(changed.end(), parts.begin(), parts.end());
    changed.insert(changed.end(), outline_.begin() + static_cast<std::ptrdiff_t>(p + count),
                   outline_.end());
    more_ = visit_(changed);
  }

  // The stages as one part, if they may be, with no more than the given room, if that is enough.
  std::optional<OutlinePart> Part(int first, int last, bool saved, bool away, Bytes room) const {
    OutlinePart part{first, last, saved, Bytes(0), away};
    if (saved && first == last) return part;
    if (last > costs_.last() - 1 || !costs_.MayRunTwice(first, saved ? last - 1 : last)) {
      return std::nullopt;
    }
    const SegmentCosts::Options options = costs_.OptionsOf(first, last, saved);
    if (options.begin == options.end) return std::nullopt;
    // Room falls along the options.
    const SegmentOption* option = options.begin;
    while (option + 1 != options.end && option->room > room.value()) ++option;
    part.room = Bytes(option->room);
    return part;
  }

  void ChangeRoom(size_t p) {
    const OutlinePart& part = outline_[p];
    if (!Runs(part)) return;
    const SegmentCosts::Options options = costs_.OptionsOf(part.first, part.last, part.saved);
    const SegmentOption* at = options.begin;
    while (at != options.end && at->room > part.room.value()) ++at;
    for (const std::ptrdiff_t step : {-2, -1, 0, 1, 2}) {
      const SegmentOption* option = at + step;
      if (option < options.begin || option >= options.end) continue;
      if (option->room == part.room.value()) continue;
      OutlinePart changed = part;
      changed.room = Bytes(option->room);
      Replace(p, 1, {changed});
    }
  }

  void FlipInput(size_t p) {
    OutlinePart changed = outline_[p];
    changed.input_away = !changed.input_away;
    Replace(p, 1, {changed});
  }

  void ReplaceIfAll(size_t p, size_t count, const std::vector<std::optional<OutlinePart>>& parts) {
    std::vector<OutlinePart> all;
    for (const std::optional<OutlinePart>& part : parts) {
      if (!part) return;
      all.push_back(*part);
    }
    Replace(p, count, all);
  }

  // Into two parts of the same kinds, a stage that is saved and the rest, all of them saved; and the
  // last stage saved or not.
  void Split(size_t p) {
    const OutlinePart& part = outline_[p];
    if (part.first == part.last && part.last == costs_.last()) return;
    ReplaceIfAll(p, 1, {Part(part.first, part.last, !part.saved, part.input_away, part.room)});
    if (part.first == part.last) return;
    for (int k = part.first; k < part.last; ++k) {
      const auto rest = Part(k + 1, part.last, part.saved, false, part.room);
      ReplaceIfAll(p, 1, {Part(part.first, k, false, part.input_away, part.room), rest});
      ReplaceIfAll(p, 1, {Part(part.first, k, true, part.input_away, part.room), rest});
    }
    std::vector<OutlinePart> saved;
    for (int l = part.first; l <= part.last; ++l) {
      saved.push_back({l, l, true, Bytes(0), l == part.first && part.input_away});
    }
    Replace(p, 1, saved);
  }

  void JoinWithNext(size_t p) {
    const OutlinePart& part = outline_[p];
    const OutlinePart& next = outline_[p + 1];
    const Bytes room = std::max(part.room, next.room);
    for (const Bytes most : {room, Bytes(kMaxTotal)}) {
      ReplaceIfAll(p, 2, {Part(part.first, next.last, next.saved, part.input_away, most)});
    }
  }

  // One stage more, or less, for the part; its neighbour gets what is left.
  void MoveBoundary(size_t p) {
    const OutlinePart& part = outline_[p];
    const OutlinePart& next = outline_[p + 1];
    for (const int end : {part.last - 1, part.last + 1}) {
      if (end < part.first || end >= next.last) continue;
      ReplaceIfAll(p, 2,
                   {Part(part.first, end, part.saved, part.input_away, part.room),
                    Part(end + 1, next.last, next.saved, next.input_away, next.room)});
    }
  }

  const Outline outline_;  // a copy: whoever looks may move on from it
  const SegmentCosts& costs_;
  const absl::FunctionRef<bool(const Outline&)> visit_;
  bool more_ = true;
};

// Where a local search is.
class Climb {
 public:
  Climb(Outline outline, Nanos makespan, const SegmentCosts& costs, const SolveOptions& options,
        int64_t* schedules, Incumbent* best)
      : outline_(std::move(outline)),
        makespan_(makespan),
        costs_(costs),
        poll_(options.stop),
        schedules_(*schedules),
        best_(*best) {}

  // To a neighbour that is faster; false if there is none, or no more may be looked at.
  absl::StatusOr<bool> Step() { return StepFrom(outline_); }

  // By way of a neighbour that would be faster if it fitted.
  absl::StatusOr<bool> StepThroughUnfit() {
    const double now = RecomputeTimeOf(outline_, costs_);
    absl::StatusOr<bool> moved = false;
    ForEachNeighbour(outline_, costs_, [&](const Outline& between) {
      if (schedules_ <= 0) return false;
      absl::Status status = poll_.Spend(int64_t{50} * costs_.last());
      if (!status.ok()) {
        moved = status;
      } else if (RecomputeTimeOf(between, costs_) < now) {
        moved = StepFrom(between);
      }
      return moved.ok() && !*moved;
    });
    return moved;
  }

  Outline Take() { return std::move(outline_); }

 private:
  absl::StatusOr<bool> StepFrom(const Outline& outline) {
    absl::StatusOr<bool> moved = false;
    ForEachNeighbour(outline, costs_, [&](const Outline& neighbour) {
      if (schedules_ <= 0) return false;
      moved = MoveIfFaster(neighbour);
      return moved.ok() && !*moved;
    });
    return moved;
  }

  absl::StatusOr<bool> MoveIfFaster(const Outline& neighbour) {
    const double least = RecomputeTimeOf(neighbour, costs_) +
                         static_cast<double>(best_.chain().ideal_time().value());
    absl::Status status = poll_.Spend(int64_t{50} * costs_.last());
    if (!status.ok()) return status;
    if (++looks_ % kLooks == 0) --schedules_;
    if (least >= static_cast<double>(makespan_.value())) return false;
    --schedules_;
    status = poll_.Spend(int64_t{2000} * costs_.last());
    if (!status.ok()) return status;
    const absl::StatusOr<std::optional<Nanos>> time =
        OfferOutline(neighbour, costs_, kExplanation, &best_);
    if (!time.ok()) return time.status();
    if (!time->has_value() || **time >= makespan_) return false;
    makespan_ = **time;
    outline_ = neighbour;
    return true;
  }

  // Neighbours whose time alone rules them out cost as much as one schedule.
  static constexpr int64_t kLooks = 16;

  Outline outline_;
  Nanos makespan_;
  const SegmentCosts& costs_;
  StopPoll poll_;
  int64_t looks_ = 0;
  int64_t& schedules_;
  Incumbent& best_;
};

std::vector<TensorName> AwayOf(const Outline& outline) {
  std::vector<TensorName> away;
  for (size_t p = 0; p < outline.size(); ++p) {
    if (!outline[p].input_away) continue;
    const bool saved = p > 0 && outline[p - 1].saved;
    away.push_back({saved ? TensorKind::kSaved : TensorKind::kActivation, outline[p].first - 1});
  }
  return away;
}

}  // namespace

absl::StatusOr<std::optional<Nanos>> OfferOutline(const Outline& outline, const SegmentCosts& costs,
                                                  const std::string& explanation, Incumbent* best) {
  return best->OfferQuickly(ComputeScheduleOf(outline, costs), AwayOf(outline), explanation);
}

void ForEachNeighbour(const Outline& outline, const SegmentCosts& costs,
                      absl::FunctionRef<bool(const Outline&)> visit) {
  NeighbourVisit(outline, costs, visit).Run();
}

absl::StatusOr<Outline> ImproveLocally(Outline outline, Nanos makespan, const SegmentCosts& costs,
                                       const SolveOptions& options, int64_t* schedules,
                                       Incumbent* best) {
  Climb climb(std::move(outline), makespan, costs, options, schedules, best);
  for (bool moved = true; moved;) {
    absl::StatusOr<bool> step = climb.Step();
    if (step.ok() && !*step) step = climb.StepThroughUnfit();
    if (!step.ok()) return step.status();
    moved = *step;
  }
  return climb.Take();
}

}  // namespace stowage
