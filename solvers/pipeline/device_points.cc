#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "solvers/pipeline/internal/pipeline_planner.h"

namespace stowage {
namespace {

// What takes no more than any of the points.
StagePoint LeastOfEach(const std::vector<StagePoint>& points) {
  StagePoint least = points.front();
  for (const StagePoint& p : points) {
    least.stash = std::min(least.stash, p.stash);
    least.forward_peak = std::min(least.forward_peak, p.forward_peak);
    least.backward_peak = std::min(least.backward_peak, p.backward_peak);
    least.overhead = std::min(least.overhead, p.overhead);
  }
  return least;
}

bool NoSlower(const DevicePoints& a, const DevicePoints& b) {
  for (size_t c = 0; c < a.size(); ++c) {
    if (a[c].overhead > b[c].overhead) return false;
  }
  return true;
}

int64_t Overhead(const DevicePoints& points) {
  int64_t sum = 0;
  for (const StagePoint& point : points) sum += point.overhead;
  return sum;
}

}  // namespace

int64_t PipelinePlanner::PeakOf(int device, const DevicePoints& points) {
  for (size_t c = 0; c < points.size(); ++c) {
    PipelineStageCosts& cost = scratch_[At(device) + c * At(shape_.devices)];
    cost.stash = Bytes(points[c].stash);
    cost.forward_peak = Bytes(points[c].forward_peak);
    cost.backward_peak = Bytes(points[c].backward_peak);
  }
  return pipeline_.Peak(device, scratch_).value();
}

absl::Status PipelinePlanner::LoadChunks(StageGoal goal, int device,
                                         const std::vector<int>& last_layers,
                                         std::vector<std::vector<StagePoint>>* chunks,
                                         DevicePoints* least) {
  for (int c = 0; c < shape_.chunks; ++c) {
    const int stage = device + c * shape_.devices;
    const absl::StatusOr<const std::vector<StagePoint>*> points =
        costs_.Points(goal, stage, First(last_layers, stage), last_layers[At(stage)]);
    if (!points.ok()) return points.status();
    chunks->push_back(**points);
    least->push_back((*points)->empty() ? StagePoint() : LeastOfEach(**points));
  }
  return absl::OkStatus();
}

// Chunk after chunk; those not yet chosen count with the least of each of their numbers.
absl::StatusOr<int64_t> PipelinePlanner::LeastOfDevice(int device,
                                                       const std::vector<int>& last_layers,
                                                       DevicePoints* points, bool* complete) {
  std::vector<std::vector<StagePoint>> chunks;
  DevicePoints now;
  absl::Status status = LoadChunks(StageGoal::kMemory, device, last_layers, &chunks, &now);
  if (!status.ok()) return status;
  int64_t least = kNone, choices = 0;
  const std::function<void(size_t)> choose = [&](size_t chunk) {
    status.Update(poll_.Spend(64));
    if (!status.ok()) return;
    if (++choices > kChoices && least < kNone) {
      *complete = false;
      return;
    }
    const int64_t need = PeakOf(device, now);
    if (need >= least) return;
    if (chunk == chunks.size()) {
      least = need;
      *points = now;
      return;
    }
    const StagePoint bound = now[chunk];
    for (const StagePoint& point : chunks[chunk]) {
      now[chunk] = point;
      choose(chunk + 1);
    }
    now[chunk] = bound;
  };
  choose(0);
  if (!status.ok()) return status;
  return least;
}

absl::StatusOr<const PipelinePlanner::Pareto*> PipelinePlanner::PointsOfDevice(
    int device, const std::vector<int>& last_layers) {
  std::vector<int> key = {device};
  for (int c = 0; c < shape_.chunks; ++c) {
    const int stage = device + c * shape_.devices;
    key.push_back(First(last_layers, stage));
    key.push_back(last_layers[At(stage)]);
  }
  const auto known = pareto_.find(key);
  if (known != pareto_.end()) return &known->second;
  std::vector<std::vector<StagePoint>> chunks;
  DevicePoints now;
  absl::Status status = LoadChunks(StageGoal::kTime, device, last_layers, &chunks, &now);
  if (!status.ok()) return status;
  const int64_t budget = Budget(device);
  std::vector<DevicePoints> found;
  Pareto pareto;
  int64_t choices = 0;
  const std::function<void(size_t)> choose = [&](size_t chunk) {
    status.Update(poll_.Spend(64 + 8 * static_cast<int64_t>(found.size())));
    if (!status.ok() || PeakOf(device, now) > budget) return;
    if (std::any_of(found.begin(), found.end(),
                    [&now](const DevicePoints& other) { return NoSlower(other, now); })) {
      return;
    }
    if (chunk == chunks.size()) {
      found.push_back(now);
      return;
    }
    const StagePoint bound = now[chunk];
    for (const StagePoint& point : chunks[chunk]) {
      if (++choices > kChoices) {
        pareto.complete = false;
        break;
      }
      const size_t before = found.size();
      now[chunk] = point;
      choose(chunk + 1);
      // Points of the last chunk rise in overhead: the first that fits beside the others is the one.
      if (chunk + 1 == chunks.size() && found.size() > before) break;
    }
    now[chunk] = bound;
  };
  choose(0);
  if (!status.ok()) return status;
  for (size_t i = 0; i < found.size(); ++i) {
    // A later one may be as fast in each chunk; it is not equal to this one.
    const bool needless =
        std::any_of(found.begin() + static_cast<std::ptrdiff_t>(i) + 1, found.end(),
                    [&](const DevicePoints& other) { return NoSlower(other, found[i]); });
    if (!needless) pareto.points.push_back(found[i]);
  }
  std::stable_sort(
      pareto.points.begin(), pareto.points.end(),
      [](const DevicePoints& a, const DevicePoints& b) { return Overhead(a) < Overhead(b); });
  status = Take((pareto.points.size() + 1) * At(shape_.chunks) * sizeof(StagePoint));
  if (!status.ok()) return status;
  return &pareto_.emplace(std::move(key), std::move(pareto)).first->second;
}

// Branch and bound: device after device; those not yet chosen count with the least overhead of each stage.
absl::Status PipelinePlanner::Combine(const std::vector<const Pareto*>& devices,
                                      ChosenPoints* chosen) {
  std::vector<StagePoint> now(At(shape_.stages()));
  const auto put = [&](int device, const DevicePoints& points) {
    for (int c = 0; c < shape_.chunks; ++c) now[At(device + c * shape_.devices)] = points[At(c)];
  };
  for (int d = 0; d < shape_.devices; ++d) {
    DevicePoints least = devices[At(d)]->points.front();
    for (const DevicePoints& points : devices[At(d)]->points) {
      for (size_t c = 0; c < least.size(); ++c) {
        least[c].overhead = std::min(least[c].overhead, points[c].overhead);
      }
    }
    put(d, least);
  }
  const std::vector<StagePoint> bounds = now;
  const absl::StatusOr<int64_t> lower_bound = Replay(chosen->last_layers, now);
  if (!lower_bound.ok()) return lower_bound.status();
  // The least sum on each device; then one device after the other, while that gains.
  std::vector<size_t> at(At(shape_.devices), 0);
  for (int d = 0; d < shape_.devices; ++d) put(d, devices[At(d)]->points.front());
  absl::StatusOr<int64_t> makespan = Replay(chosen->last_layers, now);
  if (!makespan.ok()) return makespan.status();
  for (bool gained = true; gained && *makespan > *lower_bound;) {
    gained = false;
    for (int d = 0; d < shape_.devices; ++d) {
      const std::vector<DevicePoints>& points = devices[At(d)]->points;
      for (size_t i = 0; i < points.size() && replayed_ < kReplayedTasks / 2; ++i) {
        put(d, points[i]);
        const absl::StatusOr<int64_t> other = Replay(chosen->last_layers, now);
        if (!other.ok()) return other.status();
        if (*other >= *makespan) continue;
        makespan = other;
        at[At(d)] = i;
        gained = true;
      }
      put(d, points[at[At(d)]]);
    }
  }
  chosen->makespan = *makespan;
  chosen->points = now;
  if (*makespan == *lower_bound) return absl::OkStatus();
  now = bounds;
  absl::Status status;
  const std::function<void(int)> choose = [&](int device) {
    for (const DevicePoints& points : devices[At(device)]->points) {
      if (replayed_ > kReplayedTasks) {
        chosen->complete = false;
        return;
      }
      put(device, points);
      const absl::StatusOr<int64_t> bound = Replay(chosen->last_layers, now);
      status.Update(bound.status());
      if (!status.ok()) return;
      if (*bound >= chosen->makespan) continue;
      if (device + 1 < shape_.devices) {
        choose(device + 1);
        if (!status.ok()) return;
      } else {
        chosen->makespan = *bound;
        chosen->points = now;
      }
    }
    for (int c = 0; c < shape_.chunks; ++c) {
      const size_t stage = At(device + c * shape_.devices);
      now[stage] = bounds[stage];
    }
  };
  choose(0);
  return status;
}

absl::StatusOr<ChosenPoints> PipelinePlanner::Choose(const std::vector<int>& last_layers) {
  ChosenPoints chosen;
  chosen.last_layers = last_layers;
  if (shape_.chunks == 1) {
    // A budget of its own: the fastest point of each stage, whatever the others do.
    chosen.points.resize(At(shape_.stages()));
    for (int stage = 0; stage < shape_.stages(); ++stage) {
      const absl::StatusOr<int64_t> overhead = OverheadOf(
          stage, First(last_layers, stage), last_layers[At(stage)], &chosen.points[At(stage)]);
      if (!overhead.ok()) return overhead.status();
      if (*overhead == kNone) return chosen;
    }
    const absl::StatusOr<int64_t> makespan = Replay(last_layers, chosen.points);
    if (!makespan.ok()) return makespan.status();
    chosen.makespan = *makespan;
    return chosen;
  }
  std::vector<const Pareto*> devices;
  for (int d = 0; d < shape_.devices; ++d) {
    const absl::StatusOr<const Pareto*> points = PointsOfDevice(d, last_layers);
    if (!points.ok()) return points.status();
    chosen.complete &= (*points)->complete;
    if ((*points)->points.empty()) return chosen;
    devices.push_back(*points);
  }
  const absl::Status status = Combine(devices, &chosen);
  if (!status.ok()) return status;
  return chosen;
}

}  // namespace stowage
