#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/offload/strategies.h"

namespace stowage {
namespace {

constexpr int kMostSteps = 64;

// Values 1..count, all or evenly spaced.
std::vector<int> Steps(int count) {
  const int steps = std::min(count, kMostSteps);
  std::vector<int> values;
  for (int step = 1; step <= steps; ++step) {
    values.push_back(static_cast<int>(int64_t{count} * step / steps));
  }
  return values;
}

// The set moved without regard to memory: ops wait for prefetches alone, and these are asked for
// when the backward `ahead` ops before theirs starts.
OffloadTimeline Unwatched(const OffloadProblem& problem, const OffloadSet& set, int ahead) {
  const int n = problem.size();
  OffloadTimeline timeline;
  Nanos time, link;
  size_t next = 0;
  for (int i = 0; i < n; ++i) {
    if (next < set.size() && set[next] == i) {
      const Nanos start = std::max(link, time);
      link = start + problem.OffloadTime(i);
      timeline.offloads.push_back({i, start, link});
      ++next;
    }
    timeline.forward_start.push_back(time);
    time += problem.op(i).forward_time;
  }
  timeline.backward_start.resize(static_cast<size_t>(n));
  std::vector<Nanos> arrival(static_cast<size_t>(n));
  for (int i = n - 1; i >= 0; --i) {
    while (next > 0 && set[next - 1] + ahead >= i) {
      --next;
      const Nanos start = std::max(link, time);
      link = start + problem.PrefetchTime(set[next]);
      timeline.prefetches.push_back({set[next], start, link});
      arrival[static_cast<size_t>(set[next])] = link;
    }
    time = std::max(time, arrival[static_cast<size_t>(i)]);
    timeline.backward_start[static_cast<size_t>(i)] = time;
    time += problem.op(i).backward_time;
  }
  timeline.makespan = time;
  timeline.peak = PeakOf(problem, timeline);
  timeline.host_peak = problem.BytesOf(set);
  return timeline;
}

class Tflms final : public OffloadStrategy {
 public:
  const OffloadStrategyInfo& info() const override { return info_; }

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveOptions& options,
                         OffloadPlan* plan) const override {
    std::vector<int> movable;
    for (int i = 0; i < problem.size(); ++i) {
      if (problem.activation(i) > Bytes(0)) movable.push_back(i);
    }
    const std::vector<int> counts = Steps(static_cast<int>(movable.size()));
    const std::vector<int> distances = Steps(problem.size());
    StopPoll poll(options.stop);
    for (const int count : counts) {
      const OffloadSet set(movable.begin(), movable.begin() + count);
      if (!problem.Admits(set)) continue;
      for (const int ahead : distances) {
        absl::Status status = poll.Spend(1024 * int64_t{problem.size()});
        if (!status.ok()) return status;
        OfferTimed(problem, set, Unwatched(problem, set, ahead), ahead, plan);
      }
      if (options.progress) {
        options.progress(static_cast<double>(count) / static_cast<double>(movable.size()));
      }
    }
    if (plan->status != PlanStatus::kFound) {
      plan->explanation = "ops would have to wait for memory";
    }
    return absl::OkStatus();
  }

 private:
  static void OfferTimed(const OffloadProblem& problem, const OffloadSet& set,
                         OffloadTimeline timeline, int ahead, OffloadPlan* plan) {
    if (timeline.peak > problem.memory()) return;
    const bool found = plan->status == PlanStatus::kFound;
    if (found && timeline.makespan >= plan->timeline.makespan) return;
    plan->status = PlanStatus::kFound;
    plan->set = set;
    plan->timeline = std::move(timeline);
    plan->explanation =
        absl::StrCat("the first ", set.size(), " activations, prefetched ", ahead, " ops ahead");
  }

  const OffloadStrategyInfo info_ = {
      "offload_tflms", "the first activations, prefetched some ops ahead, without watching memory"};
};

}  // namespace

const OffloadStrategy& TflmsOffload() {
  static const Tflms* const kStrategy = new Tflms;
  return *kStrategy;
}

}  // namespace stowage
