#include <algorithm>
#include <array>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "solvers/pipeline/internal/stage_points.h"

namespace stowage {
namespace {

// Points of a set, at first and once a search has done its work: sets of short chains are whole.
constexpr size_t kManyPoints = 600;
constexpr size_t kFewPoints = 48;
// Some nanoseconds each.
constexpr int64_t kWorkForManyPoints = 6000000;

bool AtMost(const StagePoint& a, const StagePoint& b) {
  return a.overhead <= b.overhead && a.stash <= b.stash && a.forward_peak <= b.forward_peak &&
         a.backward_peak <= b.backward_peak;
}

int64_t BytesOf(const std::vector<StagePoint>& points) {
  return static_cast<int64_t>(points.capacity() * sizeof(StagePoint));
}

// Leaves `most` of points that rise in overhead: the fastest, those of the least stash and peak, and others evenly.
void Thin(size_t most, std::vector<StagePoint>* points) {
  const auto peak = [](const StagePoint& p) { return std::max(p.forward_peak, p.backward_peak); };
  const size_t count = points->size();
  std::vector<bool> stays(count, false);
  for (size_t i = 0; i + 2 < most; ++i) stays[i * count / (most - 2)] = true;
  const auto least = [&](auto value) {
    return static_cast<size_t>(std::min_element(points->begin(), points->end(),
                                                [&](const StagePoint& a, const StagePoint& b) {
                                                  return value(a) < value(b);
                                                }) -
                               points->begin());
  };
  stays[least([](const StagePoint& p) { return p.stash; })] = true;
  stays[least(peak)] = true;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (stays[i]) (*points)[kept++] = (*points)[i];
  }
  points->resize(kept);
}

}  // namespace

StagePoints::StagePoints(const PersistentSpace& space, const PersistentSteps& steps, StageGoal goal,
                         std::vector<StageRoom> rooms, int64_t most_bytes, const StopToken* stop)
    : space_(space),
      steps_(steps),
      goal_(goal),
      rooms_(std::move(rooms)),
      most_bytes_(most_bytes),
      poll_(stop),
      exact_(steps.exact()) {
  std::map<std::array<int64_t, 10>, int> classes;
  class_of_.push_back(-1);
  for (int l = 1; l <= space.last(); ++l) {
    const int next = static_cast<int>(classes.size());
    class_of_.push_back(classes.insert({space.StageKey(l), next}).first->second);
  }
}

bool StagePoints::Fits(const StagePoint& point) const {
  return std::any_of(rooms_.begin(), rooms_.end(),
                     [&point](const StageRoom& room) { return room.Has(point); });
}

absl::Status StagePoints::Spend(int64_t steps) {
  work_ += steps;
  return poll_.Spend(steps);
}

absl::Status StagePoints::CheckRoom(const Points& points) const {
  if (bytes_ + BytesOf(points.keeping) + BytesOf(points.running_again) <= most_bytes_) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the points of stages take more than ", most_bytes_, " bytes"));
}

absl::Status StagePoints::Reduce(std::vector<StagePoint>* points) {
  const auto key = [](const StagePoint& p) {
    return std::tie(p.overhead, p.stash, p.backward_peak, p.forward_peak);
  };
  std::stable_sort(points->begin(), points->end(),
                   [&key](const StagePoint& a, const StagePoint& b) { return key(a) < key(b); });
  size_t kept = 0;
  for (size_t i = 0; i < points->size(); ++i) {
    const StagePoint point = (*points)[i];
    const auto end = points->begin() + static_cast<std::ptrdiff_t>(kept);
    const bool needless = std::any_of(
        points->begin(), end, [&point](const StagePoint& other) { return AtMost(other, point); });
    if (!needless) (*points)[kept++] = point;
    absl::Status status = poll_.Spend(static_cast<int64_t>(1 + kept / 4));
    if (!status.ok()) return status;
  }
  work_ += static_cast<int64_t>(points->size() * kept / 4);
  points->resize(kept);
  const size_t most = work_ > kWorkForManyPoints ? kFewPoints : kManyPoints;
  if (points->size() > most) {
    Thin(most, points);
    exact_ = false;
  }
  points->shrink_to_fit();
  return absl::OkStatus();
}

// The first layers that are equal to these, one by one, and so is what lies before and behind them.
StagePoints::Key StagePoints::KeyOf(int* first, int* last, bool with_loss) const {
  if (with_loss) return {*first, true};
  for (int s = 1; s < *first; ++s) {
    if (space_.activation(s - 1) != space_.activation(*first - 1) ||
        space_.gradient(s - 1) != space_.gradient(*first - 1)) {
      continue;
    }
    int n = 0;
    while (*first + n <= *last &&
           class_of_[static_cast<size_t>(s + n)] == class_of_[static_cast<size_t>(*first + n)]) {
      ++n;
    }
    if (*first + n <= *last) continue;
    *last -= *first - s;
    *first = s;
    break;
  }
  return {*first, false};
}

// Appends the points of the first n layers for each n up to last - first + 1. `seed` is held beside the stash until the
// backward begins.
absl::Status StagePoints::Extend(int first, int last, int64_t seed, Row* row) {
  if (row->points.empty()) {
    StagePoint nothing;
    nothing.stash = space_.activation(first - 1);
    nothing.forward_peak = nothing.stash + seed;
    nothing.backward_peak = space_.gradient(first - 1);
    row->points.push_back({{nothing}, {}});
  }
  for (int end = first + static_cast<int>(row->points.size()) - 1; end <= last; ++end) {
    Points made;
    for (int start = end; start >= first; --start) {
      // The loss is kept, and a stretch of layers runs again as a whole.
      const bool may_run_again = end < space_.last() && space_.Recomputable(start, end);
      if (start < end && !may_run_again) break;
      const Points& before = row->points[static_cast<size_t>(start - first)];
      int64_t run_need = space_.FirstRunNeed(start);
      for (int l = start + 1; l <= end; ++l) run_need = space_.ExtendRunNeed(run_need, l);
      const PersistentSteps::Row& steps = steps_.RowOf(start, end);
      const int64_t again = space_.RecomputeTime(start, end);
      int64_t work = 1;
      for (const bool runs_again : {false, true}) {
        const std::vector<StagePoint>& points = runs_again ? before.running_again : before.keeping;
        for (size_t i = 0; i < points.size(); ++i) {
          StagePoint point = points[i];
          const int64_t held = point.stash;
          const int64_t forward_peak = point.forward_peak, backward_peak = point.backward_peak;
          point.item = start;
          point.before = static_cast<int32_t>(i);
          point.before_runs_again = runs_again;
          ++work;
          if (start == end) {
            point.item_memory = -1;
            point.stash = held + space_.saved(end);
            point.forward_peak = std::max(forward_peak, held + seed + space_.SavingNeed(end));
            point.backward_peak = std::max(backward_peak, held + space_.BackwardNeed(end));
            if (Fits(point)) made.keeping.push_back(point);
          }
          if (!may_run_again || steps.empty()) continue;
          point.forward_peak = std::max(forward_peak, held + seed + run_need);
          // The steps that need no more than what was needed before: the last is the fastest.
          auto step = std::upper_bound(
              steps.begin(), steps.end(), backward_peak - held,
              [](int64_t m, const PersistentSteps::Step& s) { return m < s.memory; });
          if (step != steps.begin()) --step;
          for (; step != steps.end(); ++step) {
            point.item_memory = step->memory;
            point.backward_peak = std::max(backward_peak, held + step->memory);
            point.overhead =
                goal_ == StageGoal::kTime ? points[i].overhead + again + step->overhead : 0;
            point.stash = held;  // as if it were sent
            ++work;
            if (!Fits(point)) break;
            point.stash = held + space_.activation(end);
            made.running_again.push_back(point);
            if (goal_ == StageGoal::kMemory) break;
          }
        }
      }
      absl::Status status = Spend(4 * work);
      if (status.ok()) status = CheckRoom(made);
      if (!status.ok()) return status;
    }
    absl::Status status = Reduce(&made.keeping);
    if (status.ok()) status = Reduce(&made.running_again);
    if (!status.ok()) return status;
    bytes_ += BytesOf(made.keeping) + BytesOf(made.running_again);
    row->points.push_back(std::move(made));
  }
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<StagePoint>*> StagePoints::Of(int first, int last,
                                                               bool with_loss) {
  Row& row = rows_[KeyOf(&first, &last, with_loss)];
  const auto known = row.whole.find(last);
  if (known != row.whole.end()) return &known->second;
  const int end = with_loss ? last + 1 : last;
  absl::Status status = Extend(first, end, with_loss ? space_.gradient(end) : 0, &row);
  if (!status.ok()) return status;
  const Points& points = row.points[static_cast<size_t>(end - first + 1)];
  std::vector<StagePoint> whole = points.keeping;
  for (StagePoint& point : whole) {
    if (with_loss) point.stash += space_.gradient(end);
  }
  for (StagePoint point : points.running_again) {
    point.stash -= space_.activation(end);
    whole.push_back(point);
  }
  status = Reduce(&whole);
  if (status.ok()) status = CheckRoom({whole, {}});
  if (!status.ok()) return status;
  bytes_ += BytesOf(whole);
  return &row.whole.emplace(last, std::move(whole)).first->second;
}

std::vector<StagePoint> StagePoints::OfLastAlone(int first) const {
  std::vector<StagePoint> points;
  for (const PersistentSteps::Step& step : steps_.RowOf(first, space_.last())) {
    StagePoint point;
    point.forward_peak = point.backward_peak =
        std::max(space_.activation(first - 1) + step.memory, space_.gradient(first - 1));
    point.overhead = step.overhead;
    point.item_memory = step.memory;
    points.push_back(point);
  }
  std::reverse(points.begin(), points.end());
  return points;
}

StagePoints::Built StagePoints::BuildLastAlone(int first, const StagePoint& point) const {
  Built built;
  built.schedule = steps_.Backtrack(first, space_.last(), point.item_memory);
  for (Instruction& instruction : built.schedule) instruction.stage -= first - 1;
  const int loss = space_.last() - first + 1;
  const auto turn = std::find(built.schedule.begin(), built.schedule.end(), ForwardSave(loss));
  built.forward_instructions = static_cast<int>(turn - built.schedule.begin()) + 1;
  return built;
}

StagePoints::Built StagePoints::Build(int first, int last, bool with_loss,
                                      const StagePoint& point) const {
  const Row& row = rows_.at(KeyOf(&first, &last, with_loss));
  const int end = with_loss ? last + 1 : last;
  // From the last item to the first.
  struct Item {
    int first, last;
    int64_t memory;
  };
  std::vector<Item> items;
  const StagePoint* at = &point;
  for (int e = end;;) {
    items.push_back({at->item, e, at->item_memory});
    e = at->item - 1;
    if (e < first) break;
    const Points& before = row.points[static_cast<size_t>(e - first + 1)];
    at = &(at->before_runs_again ? before.running_again
                                 : before.keeping)[static_cast<size_t>(at->before)];
  }
  Built built;
  Schedule& schedule = built.schedule;
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    if (item->memory < 0) {
      schedule.push_back(ForwardSave(item->first));
      continue;
    }
    schedule.push_back(ForwardNoSave(item->first));
    for (int l = item->first + 1; l <= item->last; ++l) {
      schedule.push_back(ForwardNoSaveFreeInput(l));
    }
  }
  if (!with_loss) {
    schedule.push_back(ForwardSave(end + 1));
    schedule.push_back(Backward(end + 1));
  }
  built.forward_instructions = static_cast<int>(schedule.size());
  for (const Item& item : items) {
    if (item.memory < 0) {
      schedule.push_back(Backward(item.first));
      continue;
    }
    const Schedule again = steps_.Backtrack(item.first, item.last, item.memory);
    schedule.insert(schedule.end(), again.begin(), again.end());
  }
  for (Instruction& instruction : schedule) instruction.stage -= first - 1;
  return built;
}

}  // namespace stowage
