#include "solvers/joint/joint_search.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/joint/joint_recurrence.h"
#include "solvers/joint/least_on_host.h"
#include "solvers/joint/local_search.h"
#include "solvers/joint/outline_schedule.h"
#include "solvers/joint/segment_costs.h"
#include "solvers/offload/compute_trace.h"
#include "solvers/offload/greedy.h"
#include "solvers/offload/trace_problem.h"
#include "solvers/plan/schedule_code.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

constexpr char kRecurrence[] = "parts kept, recomputed and offloaded together";
constexpr int64_t kMaxInstructions = int64_t{1} << 24;

// Of stages that may run twice; the others are saved.
Schedule CheckpointEveryStage(const Chain& chain) {
  const auto saved = [&chain](int l) {
    return l > chain.length() || !chain.stage(l).recomputable();
  };
  Schedule schedule;
  for (int l = 1; l <= chain.length() + 1; ++l) {
    schedule.push_back(saved(l) ? ForwardKeepAll(l) : ForwardKeepInput(l));
  }
  for (int l = chain.length() + 1; l >= 1; --l) {
    if (!saved(l)) schedule.push_back(ForwardKeepAll(l));
    schedule.push_back(Backward(l));
  }
  return schedule;
}

// The least memory in which a compute schedule runs with the first tensors away, as few as needed.
absl::StatusOr<Bytes> LeastEagerMemory(const Chain& chain, const Schedule& compute,
                                       const TransferModel& transfers) {
  const absl::StatusOr<ComputeTrace> trace = TraceOf(chain, compute);
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<TraceProblem> any = MakeTraceProblem(*trace, transfers, Bytes(0));
  if (!any.ok()) return any.status();
  // Less memory takes more of the host.
  Bytes low = any->problem.least_memory(), high = std::max(any->problem.peak(), low);
  while (low < high) {
    const Bytes middle(low.value() + (high.value() - low.value()) / 2);
    const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(*trace, transfers, middle);
    if (!problem.ok()) return problem.status();
    const OffloadSet set = EagerSet(problem->problem);
    if (problem->problem.BytesOf(set) <= transfers.host_memory) {
      high = middle;
    } else {
      low = middle + Bytes(1);
    }
  }
  return low;
}

struct Rated {
  Nanos makespan;
  Outline outline;
};

// Proposals of the recurrence that fit, the fastest first.
class Proposals {
 public:
  Proposals(const SegmentCosts& costs, const SolveOptions& options, Incumbent* best)
      : costs_(costs), options_(options), best_(best) {}

  absl::Status Add(size_t states) {
    constexpr size_t kOutlines = 128;
    // What the recurrence takes for a little slower may be faster.
    constexpr double kSlack = 1.2;
    const double ideal = static_cast<double>(best_->chain().ideal_time().value());
    const double known = static_cast<double>(best_->makespan().value()) - ideal;
    absl::StatusOr<std::vector<Outline>> outlines =
        ProposeOutlines(best_->chain(), best_->transfers(), costs_, best_->memory(),
                        {states, kOutlines, kSlack * known}, options_);
    if (!outlines.ok()) return outlines.status();
    StopPoll poll(options_.stop);
    for (Outline& outline : *outlines) {
      absl::Status status = poll.Spend(int64_t{2000} * costs_.last());
      if (!status.ok()) return status;
      const absl::StatusOr<std::optional<Nanos>> time =
          OfferOutline(outline, costs_, kRecurrence, best_);
      if (!time.ok()) return time.status();
      if (time->has_value()) rated_.push_back({**time, std::move(outline)});
    }
    std::stable_sort(rated_.begin(), rated_.end(),
                     [](const Rated& a, const Rated& b) { return a.makespan < b.makespan; });
    return absl::OkStatus();
  }

  std::vector<Rated>& rated() { return rated_; }

 private:
  const SegmentCosts& costs_;
  const SolveOptions& options_;
  Incumbent* const best_;
  std::vector<Rated> rated_;
};

}  // namespace

JointEffort FullEffort() { return {150, 1500, 4, 12000, true}; }
JointEffort LightEffort() { return {0, 200, 1, 1000, false}; }

absl::Status OfferCheapSchedules(Incumbent* best) {
  const Chain& chain = best->chain();
  const Schedule least = LeastScheduleOnHost(chain);
  absl::Status status;
  if (Simulate(chain, least, best->transfers()).ok()) {
    status = best->Offer(least, "everything on the host that is not in use");
  }
  if (status.ok()) {
    status = best->OfferQuickly(StoreAllSchedule(chain), {}, "offloading alone").status();
  }
  if (!status.ok()) return status;
  return best->OfferQuickly(CheckpointEveryStage(chain), {}, "a checkpoint of every stage")
      .status();
}

absl::StatusOr<Bytes> CheapLeastMemory(const Chain& chain, const TransferModel& transfers) {
  Bytes least(kMaxTotal);
  const absl::StatusOr<Simulation> away = Simulate(chain, LeastScheduleOnHost(chain), transfers);
  if (away.ok()) return away->peak;
  for (const Schedule& schedule : {StoreAllSchedule(chain), CheckpointEveryStage(chain)}) {
    const absl::StatusOr<Bytes> memory = LeastEagerMemory(chain, schedule, transfers);
    if (!memory.ok()) return memory.status();
    least = std::min(least, *memory);
  }
  return least;
}

absl::Status OfferRecurrence(const JointEffort& effort, const SolveOptions& options,
                             Incumbent* best) {
  absl::StatusOr<std::optional<SegmentCosts>> costs =
      SegmentCosts::Compute(best->chain(), best->transfers(), best->memory(), options);
  if (!costs.ok()) return costs.status();
  if (!costs->has_value()) return absl::OkStatus();
  Proposals proposals(**costs, options, best);
  for (const size_t states : {effort.first_states, effort.states}) {
    if (states == 0) continue;
    absl::Status status = proposals.Add(states);
    if (!status.ok()) return status;
  }
  std::vector<Rated>& rated = proposals.rated();
  int64_t schedules = effort.schedules;
  for (size_t start = 0; start < rated.size() && static_cast<int>(start) < effort.starts; ++start) {
    int64_t share = schedules / (effort.starts - static_cast<int64_t>(start));
    schedules -= share;
    absl::StatusOr<Outline> outline = ImproveLocally(
        std::move(rated[start].outline), rated[start].makespan, **costs, options, &share, best);
    if (!outline.ok()) return outline.status();
    schedules += share;
    if (!effort.thorough) continue;
    absl::Status status = best->OfferThoroughly(ComputeScheduleOf(*outline, **costs), options,
                                                "parts kept, recomputed and offloaded together");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status OfferFrontier(const Frontier& frontier, const JointEffort& effort,
                           const SolveOptions& options, Incumbent* best) {
  constexpr char kExplanation[] = "a schedule for more memory, what is too much of it offloaded";
  StopPoll poll(options.stop);
  std::optional<Schedule> fastest;
  Nanos fastest_time(kMaxTotal);
  for (const Frontier::Point& point : frontier.points()) {
    if (point.peak < best->memory()) continue;
    absl::StatusOr<Schedule> schedule = DecodeSchedule(point.schedule, kMaxInstructions);
    if (!schedule.ok()) return absl::InternalError(schedule.status().message());
    absl::Status status = poll.Spend(static_cast<int64_t>(schedule->size()) * 2000);
    if (!status.ok()) return status;
    const absl::StatusOr<std::optional<Nanos>> time =
        best->OfferQuickly(*schedule, {}, kExplanation);
    if (!time.ok()) return time.status();
    if (!time->has_value() || **time >= fastest_time) continue;
    fastest_time = **time;
    fastest = *std::move(schedule);
  }
  if (!fastest || !effort.thorough) return absl::OkStatus();
  return best->OfferThoroughly(*fastest, options, kExplanation);
}

}  // namespace stowage
