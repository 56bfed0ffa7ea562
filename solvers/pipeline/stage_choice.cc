#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "solvers/pipeline/internal/pipeline_planner.h"

namespace stowage {

// What the makespan is at least if the device has these layers and this overhead, and nothing else runs again: what is
// before it and behind it, its own tasks, and where it waits for the first gradient and for the last.
int64_t PipelinePlanner::BoundOf(int device, int first, int last, int64_t overhead) const {
  const int64_t forward = costs_.Forward(first, last);
  const int64_t backward = costs_.Backward(first, last) + overhead;
  const int layers = costs_.layers();
  const auto both = [this](int a, int b) {
    return a > b ? 0 : costs_.Forward(a, b) + costs_.Backward(a, b);
  };
  const int64_t transfer = 2 * shape_.transfer_time.value();
  const int behind = shape_.devices - 1 - device;
  const int64_t before = both(1, first - 1) + transfer * device;
  const int64_t rest = both(last + 1, layers) + transfer * behind;
  const int64_t ahead = std::min(behind, shape_.microbatches - 1);
  const int64_t first_wait = std::max<int64_t>(0, rest - ahead * forward);
  const int64_t last_wait = std::max<int64_t>(0, rest - ahead * backward);
  // With as many microbatches as the device runs ahead the two are one.
  const int64_t waits =
      shape_.microbatches > ahead + 1 ? first_wait + last_wait : std::max(first_wait, last_wait);
  return before + shape_.microbatches * (forward + backward) + waits;
}

// With no plans of stages whose bound is above `limit` without any overhead.
absl::Status PipelinePlanner::FillBounds(int64_t limit) {
  const int layers = costs_.layers();
  bounds_.assign(At(shape_.devices) + 1, std::vector<int64_t>(At(layers) + 2, kNone));
  bounds_[At(shape_.devices)][At(layers) + 1] = 0;
  for (int d = shape_.devices - 1; d >= 0; --d) {
    const int least_end = d == shape_.devices - 1 ? layers : 1;
    for (int first = d + 1; first <= layers; ++first) {
      if (d == 0 && first > 1) break;
      int64_t& best = bounds_[At(d)][At(first)];
      for (int last = std::max(first, least_end); last <= layers; ++last) {
        if (shape_.microbatches * (costs_.Forward(first, last) + costs_.Backward(first, last)) >
            limit) {
          break;  // it rises with the last layer
        }
        const int64_t behind = bounds_[At(d) + 1][At(last) + 1];
        if (behind == kNone || BoundOf(d, first, last, 0) > limit) continue;
        const absl::StatusOr<int64_t> overhead = OverheadOf(d, first, last);
        if (!overhead.ok()) return overhead.status();
        if (*overhead == kNone) continue;
        best = std::min(best, std::max(behind, BoundOf(d, first, last, *overhead)));
      }
      absl::Status status = poll_.Spend(64 * layers);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// The same bound where nothing runs again and there is no budget.
absl::StatusOr<int64_t> PipelinePlanner::PlainBound() {
  const int layers = costs_.layers();
  std::vector<int64_t> behind(At(layers) + 2, kNone);
  behind[At(layers) + 1] = 0;
  for (int d = shape_.devices - 1; d >= 0; --d) {
    std::vector<int64_t> bounds(At(layers) + 2, kNone);
    for (int first = d + 1; first <= layers; ++first) {
      for (int last = first; last <= layers; ++last) {
        if (behind[At(last) + 1] == kNone) continue;
        bounds[At(first)] =
            std::min(bounds[At(first)], std::max(behind[At(last) + 1], BoundOf(d, first, last, 0)));
      }
      absl::Status status = poll_.Spend(16 * layers);
      if (!status.ok()) return status;
    }
    behind = std::move(bounds);
  }
  return behind[1];
}

// Stages that attain the bound, of which the slowest is fastest.
std::vector<int> PipelinePlanner::ByBounds() const {
  std::vector<int> last_layers;
  int first = 1;
  for (int d = 0; d < shape_.devices; ++d) {
    int best_last = 0;
    int64_t best = kNone;
    for (int last = first; last <= costs_.layers(); ++last) {
      const int64_t behind = bounds_[At(d) + 1][At(last) + 1];
      const auto known = fastest_[At(d)].find(first * 2048 + last);
      if (behind == kNone || known == fastest_[At(d)].end()) continue;
      if (known->second.overhead == kNone) continue;
      const int64_t bound = std::max(behind, BoundOf(d, first, last, known->second.overhead));
      if (bound >= best) continue;
      best = bound;
      best_last = last;
    }
    last_layers.push_back(best_last);
    first = best_last + 1;
  }
  return last_layers;
}

// Moves ends of stages, one or several beside each other, while that gains.
absl::Status PipelinePlanner::Improve(ChosenPoints* best) {
  const int ends = shape_.stages() - 1;
  const int reach = std::min(ends, shape_.chunks == 1 ? ends : 1);
  for (bool gained = true; gained;) {
    gained = false;
    for (int count = 1; count <= reach; ++count) {
      for (int from = 0; from + count <= ends; ++from) {
        for (const int by : {-1, 1, -2, 2}) {
          if (replayed_ > kReplayedTasks / 2) return absl::OkStatus();
          absl::Status status = poll_.Spend(4 * ends);
          if (!status.ok()) return status;
          std::vector<int> last_layers = best->last_layers;
          for (int i = from; i < from + count; ++i) last_layers[At(i)] += by;
          bool valid = last_layers.front() >= 1;
          for (int i = 0; i < ends; ++i) valid &= last_layers[At(i)] < last_layers[At(i) + 1];
          if (!valid) continue;
          const absl::StatusOr<ChosenPoints> other = Choose(last_layers);
          if (!other.ok()) return other.status();
          if (other->makespan >= best->makespan) continue;
          *best = *other;
          gained = true;
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PipelinePlanner::Branch(int device, int64_t extra, std::vector<int>* last_layers,
                                     std::vector<StagePoint>* points, ChosenPoints* best) {
  if (device == shape_.devices) {
    const absl::StatusOr<int64_t> makespan = Replay(*last_layers, *points);
    if (!makespan.ok()) return makespan.status();
    if (*makespan < best->makespan) {
      best->makespan = *makespan;
      best->last_layers = *last_layers;
      best->points = *points;
    }
    return absl::OkStatus();
  }
  const int first = First(*last_layers, device);
  struct Next {
    int64_t bound;
    int last;
  };
  std::vector<Next> next;
  for (int last = first; last <= costs_.layers(); ++last) {
    const int64_t behind = bounds_[At(device) + 1][At(last) + 1];
    if (behind == kNone ||
        std::max(behind, BoundOf(device, first, last, 0)) + extra >= best->makespan) {
      continue;
    }
    const absl::StatusOr<int64_t> overhead = OverheadOf(device, first, last);
    if (!overhead.ok()) return overhead.status();
    if (*overhead == kNone) continue;
    // What is before the device counts in its bound, with what runs again there.
    const int64_t bound = std::max(BoundOf(device, first, last, *overhead) + extra,
                                   device + 1 == shape_.devices ? 0 : behind + extra + *overhead);
    if (bound < best->makespan) next.push_back({bound, last});
  }
  std::stable_sort(next.begin(), next.end(),
                   [](const Next& a, const Next& b) { return a.bound < b.bound; });
  for (const Next& choice : next) {
    if (choice.bound >= best->makespan) break;
    if (++choices_ > kChoices || replayed_ > kReplayedTasks) {
      best->complete = false;
      return absl::OkStatus();
    }
    last_layers->push_back(choice.last);
    points->emplace_back();
    const absl::StatusOr<int64_t> overhead =
        OverheadOf(device, first, choice.last, &points->back());
    if (!overhead.ok()) return overhead.status();
    absl::Status status = Branch(device + 1, extra + *overhead, last_layers, points, best);
    last_layers->pop_back();
    points->pop_back();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<PipelinePlan> PipelinePlanner::ChosenOneStageEach() {
  int64_t most = 0;
  for (int d = 0; d < shape_.devices; ++d) {
    most = std::max(most, BoundOf(d, 1, costs_.layers(), 0));
  }
  const absl::StatusOr<int64_t> plain_bound = PlainBound();
  if (!plain_bound.ok()) return plain_bound.status();
  ChosenPoints best;
  // Long stages are not looked at before it is known that they are of use.
  for (int64_t limit = *plain_bound + *plain_bound / 8;;) {
    limit = std::min(limit, most);
    absl::Status status = FillBounds(limit);
    if (!status.ok()) return status;
    if (bounds_[0][1] != kNone) {
      absl::StatusOr<ChosenPoints> chosen = Choose(ByBounds());
      if (!chosen.ok()) return chosen.status();
      if (chosen->makespan < best.makespan) best = *std::move(chosen);
    }
    if (best.makespan <= limit || limit == most) break;
    limit = best.makespan == kNone ? limit + limit / 2 : best.makespan;
  }
  if (best.makespan == kNone) return NoStagesFit();
  absl::Status status = Improve(&best);
  if (!status.ok()) return status;
  choices_ = 0;
  std::vector<int> last_layers;
  std::vector<StagePoint> points;
  status = Branch(0, 0, &last_layers, &points, &best);
  if (!status.ok()) return status;
  absl::StatusOr<PipelinePlan> plan = Finish(best, StageGoal::kTime);
  if (!plan.ok()) return plan;
  plan->lower_bound = !costs_.exact(StageGoal::kTime) ? Nanos(*plain_bound)
                      : best.complete                 ? plan->makespan
                                                      : Nanos(bounds_[0][1]);
  plan->proven_optimal = plan->makespan == plan->lower_bound;
  return plan;
}

// Where no choice of stages is within the budgets, each stage on a device of its own.
absl::StatusOr<PipelinePlan> PipelinePlanner::NoStagesFit() {
  const int layers = costs_.layers(), devices = shape_.devices;
  const auto may_be = [&](int d, int first, int last) {
    return (d == 0) == (first == 1) && (d == devices - 1) == (last == layers) && first > d &&
           layers - last >= devices - 1 - d;
  };
  // What device d must have for the layers from `first` on, by the last of them.
  const auto needs_of = [&](int d, int first) -> absl::StatusOr<std::vector<int64_t>> {
    std::vector<int64_t> needs(At(layers) + 1, kNone);
    for (int last = first; last <= layers; ++last) {
      if (!may_be(d, first, last)) continue;
      const absl::StatusOr<int64_t> least = LeastOf(d, first, last);
      if (!least.ok()) return least.status();
      needs[At(last)] = *least;
    }
    absl::Status status = poll_.Spend(64 * layers);
    if (!status.ok()) return status;
    return needs;
  };
  PipelinePlan plan;
  plan.schedule_class = kPipelineClass;
  int64_t least_rise = kNone;
  // fits_to[d][l]: the devices before d have the layers up to l within their budgets; fits_from[d][l]: those from d on
  // have the layers from l on. worst_from: the least equal budget of those.
  std::vector<std::vector<bool>> fits_to(At(devices) + 1, std::vector<bool>(At(layers) + 2));
  std::vector<std::vector<bool>> fits_from = fits_to;
  std::vector<std::vector<int64_t>> worst_from(At(devices) + 1,
                                               std::vector<int64_t>(At(layers) + 2, kNone));
  fits_to[0][0] = fits_from[At(devices)][At(layers) + 1] = true;
  worst_from[At(devices)][At(layers) + 1] = 0;
  for (int d = 0; d < devices; ++d) {
    for (int first = 1; first <= layers; ++first) {
      if (!fits_to[At(d)][At(first) - 1]) continue;
      const absl::StatusOr<std::vector<int64_t>> needs = needs_of(d, first);
      if (!needs.ok()) return needs.status();
      for (int last = first; last <= layers; ++last) {
        if ((*needs)[At(last)] <= Budget(d)) fits_to[At(d) + 1][At(last)] = true;
      }
    }
  }
  for (int d = devices - 1; d >= 0; --d) {
    for (int first = 1; first <= layers; ++first) {
      const absl::StatusOr<std::vector<int64_t>> needs = needs_of(d, first);
      if (!needs.ok()) return needs.status();
      for (int last = first; last <= layers; ++last) {
        const int64_t own = (*needs)[At(last)];
        int64_t& worst = worst_from[At(d)][At(first)];
        worst = std::min(worst, std::max(own, worst_from[At(d) + 1][At(last) + 1]));
        if (own == kNone || !fits_from[At(d) + 1][At(last) + 1]) continue;
        const int64_t rise = own - Budget(d);
        if (rise <= 0) fits_from[At(d)][At(first)] = true;
        if (!fits_to[At(d)][At(first) - 1] || rise > least_rise) continue;
        // The first device of several, and its first layers.
        if (rise == least_rise && plan.short_device == d) continue;
        least_rise = rise;
        plan.short_device = d;
        plan.least_budget = Bytes(own);
      }
    }
  }
  if (fits_from[0][1]) {
    // Points were thinned, and these are what is left.
    ChosenPoints least;
    for (int d = 0, first = 1; d < devices; ++d) {
      const absl::StatusOr<std::vector<int64_t>> needs = needs_of(d, first);
      if (!needs.ok()) return needs.status();
      for (int last = first; last <= layers; ++last) {
        if ((*needs)[At(last)] > Budget(d) || !fits_from[At(d) + 1][At(last) + 1]) continue;
        StagePoint point;
        const absl::StatusOr<int64_t> again = LeastOf(d, first, last, &point);
        if (!again.ok()) return again.status();
        least.points.push_back(point);
        least.last_layers.push_back(last);
        first = last + 1;
        break;
      }
    }
    absl::StatusOr<PipelinePlan> found = Finish(least, StageGoal::kMemory);
    const absl::StatusOr<int64_t> bound = PlainBound();
    if (!bound.ok()) return bound.status();
    if (found.ok()) found->lower_bound = Nanos(*bound);
    return found;
  }
  plan.least_equal_budget = Bytes(worst_from[0][1]);
  plan.status =
      costs_.exact(StageGoal::kMemory) ? PlanStatus::kProvenInfeasible : PlanStatus::kNotFound;
  return plan;
}

// As even in plain time as the layers allow: the longest stage is as short as can be.
absl::StatusOr<std::vector<int>> PipelinePlanner::EvenStages() {
  const int layers = costs_.layers(), stages = shape_.stages();
  std::vector<std::vector<int64_t>> longest(At(stages) + 1,
                                            std::vector<int64_t>(At(layers) + 2, kNone));
  const auto time = [this](int a, int b) { return costs_.Forward(a, b) + costs_.Backward(a, b); };
  longest[At(stages)][At(layers) + 1] = 0;
  for (int s = stages - 1; s >= 0; --s) {
    for (int first = s + 1; first <= layers; ++first) {
      for (int last = first; last <= layers; ++last) {
        longest[At(s)][At(first)] =
            std::min(longest[At(s)][At(first)],
                     std::max(time(first, last), longest[At(s) + 1][At(last) + 1]));
      }
      absl::Status status = poll_.Spend(64 * layers);
      if (!status.ok()) return status;
    }
  }
  std::vector<int> last_layers;
  for (int s = 0, first = 1; s < stages; ++s) {
    for (int last = first; last <= layers; ++last) {
      if (std::max(time(first, last), longest[At(s) + 1][At(last) + 1]) >
          longest[At(s)][At(first)]) {
        continue;
      }
      last_layers.push_back(last);
      first = last + 1;
      break;
    }
  }
  return last_layers;
}

// Every choice of stages, if there are not too many.
absl::Status PipelinePlanner::ForEachChoice(
    const std::function<absl::Status(const std::vector<int>&)>& visit, bool* all) const {
  constexpr int64_t kMostChoices = 1000;
  const int stages = shape_.stages(), layers = costs_.layers();
  int64_t count = 1;
  for (int i = 1; i < stages; ++i) {
    count = count * (layers - i) / i;
    if (count > kMostChoices) {
      *all = false;
      return absl::OkStatus();
    }
  }
  std::vector<int> ends(At(stages));
  std::iota(ends.begin(), ends.end(), 1);
  ends.back() = layers;
  for (;;) {
    absl::Status status = visit(ends);
    if (!status.ok()) return status;
    int i = stages - 2;
    while (i >= 0 && ends[At(i)] == layers - (stages - 1 - i)) --i;
    if (i < 0) return absl::OkStatus();
    ++ends[At(i)];
    for (int j = i + 1; j < stages - 1; ++j) ends[At(j)] = ends[At(j) - 1] + 1;
  }
}

absl::StatusOr<PipelinePlan> PipelinePlanner::ChosenInterleaved() {
  const absl::StatusOr<std::vector<int>> even = EvenStages();
  if (!even.ok()) return even.status();
  absl::StatusOr<ChosenPoints> best = Choose(*even);
  if (!best.ok()) return best.status();
  bool all = true;
  absl::Status status = ForEachChoice(
      [&](const std::vector<int>& last_layers) {
        const absl::StatusOr<ChosenPoints> other = Choose(last_layers);
        if (!other.ok()) return other.status();
        all &= other->complete;
        if (other->makespan < best->makespan) best = *other;
        return absl::OkStatus();
      },
      &all);
  if (status.ok() && !all && best->makespan != kNone) status = Improve(&*best);
  if (!status.ok()) return status;
  if (best->makespan != kNone) {
    absl::StatusOr<PipelinePlan> plan = Finish(*best, StageGoal::kTime);
    if (!plan.ok()) return plan;
    const int layers = costs_.layers();
    const int64_t step = costs_.Forward(1, layers) + costs_.Backward(1, layers);
    // On average a device has a share of all tasks.
    plan->lower_bound = all && costs_.exact(StageGoal::kTime)
                            ? plan->makespan
                            : Nanos(step * shape_.microbatches / shape_.devices);
    plan->proven_optimal = plan->makespan == plan->lower_bound;
    return plan;
  }
  // The stages that want the least equal budget. What was not looked at for time counts no more.
  all = true;
  absl::StatusOr<PipelinePlan> least = Infeasible(*even);
  if (!least.ok()) return least.status();
  status = ForEachChoice(
      [&](const std::vector<int>& last_layers) {
        if (least->status == PlanStatus::kFound) return absl::OkStatus();
        absl::StatusOr<PipelinePlan> plan = Infeasible(last_layers);
        if (!plan.ok()) return plan.status();
        all &= plan->status != PlanStatus::kNotFound;
        if (plan->status == PlanStatus::kFound ||
            plan->least_equal_budget < least->least_equal_budget) {
          *least = *std::move(plan);
        }
        return absl::OkStatus();
      },
      &all);
  if (!status.ok()) return status;
  if (least->status == PlanStatus::kProvenInfeasible && !all) least->status = PlanStatus::kNotFound;
  if (least->status == PlanStatus::kFound) {
    const int layers = costs_.layers();
    const int64_t step = costs_.Forward(1, layers) + costs_.Backward(1, layers);
    least->lower_bound = Nanos(step * shape_.microbatches / shape_.devices);
  }
  return least;
}

absl::StatusOr<PipelinePlan> PipelinePlanner::ChosenStages() {
  return shape_.chunks == 1 ? ChosenOneStageEach() : ChosenInterleaved();
}

}  // namespace stowage
