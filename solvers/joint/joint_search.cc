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

constexpr char kJoint[] = "parts kept, recomputed and offloaded together";
constexpr char kPoint[] = "a schedule for more memory, what is too much of it offloaded";
// Of looking at one instruction of a schedule, in steps of a poll.
constexpr int64_t kWorkPerStep = 2000;
// Longer chains get fewer schedules.
constexpr int kStages = 100;

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

// The least memory in which a compute schedule runs with the first tensors away, as few as needed;
// all of it where copies take longer than times can say.
Bytes LeastEagerMemory(const Chain& chain, const Schedule& compute,
                       const TransferModel& transfers) {
  const absl::StatusOr<ComputeTrace> trace = TraceOf(chain, compute);
  if (!trace.ok()) return Bytes(kMaxTotal);
  const auto problem_at = [&](Bytes memory) { return MakeTraceProblem(*trace, transfers, memory); };
  const absl::StatusOr<TraceProblem> any = problem_at(Bytes(0));
  if (!any.ok()) return Simulate(chain, compute)->peak;
  // Less memory takes more of the host.
  Bytes low = any->problem.least_memory(), high = std::max(any->problem.peak(), low);
  while (low < high) {
    const Bytes middle(low.value() + (high.value() - low.value()) / 2);
    const OffloadProblem problem = problem_at(middle)->problem;
    if (problem.BytesOf(EagerSet(problem)) <= transfers.host_memory) {
      high = middle;
    } else {
      low = middle + Bytes(1);
    }
  }
  return low;
}

}  // namespace

absl::Status OfferCheapSchedules(const StopToken* stop, Incumbent* best) {
  const Chain& chain = best->chain();
  const Schedule least = LeastScheduleOnHost(chain);
  absl::Status status;
  if (Simulate(chain, least, best->transfers()).ok()) {
    status = best->Offer(least, "everything on the host that is not in use");
    if (status.ok()) status = best->LoosenBest(stop);
  }
  if (status.ok()) {
    status = best->OfferQuickly(StoreAllSchedule(chain), {}, "offloading alone").status();
  }
  if (!status.ok()) return status;
  return best->OfferQuickly(CheckpointEveryStage(chain), {}, "a checkpoint of every stage")
      .status();
}

Bytes CheapLeastMemory(const Chain& chain, const TransferModel& transfers) {
  Bytes least(kMaxTotal);
  const absl::StatusOr<Simulation> away = Simulate(chain, LeastScheduleOnHost(chain), transfers);
  if (away.ok()) return away->peak;
  for (const Schedule& schedule : {StoreAllSchedule(chain), CheckpointEveryStage(chain)}) {
    least = std::min(least, LeastEagerMemory(chain, schedule, transfers));
  }
  return least;
}

JointSearch::JointSearch(const SegmentCosts* costs, const SolveOptions& options, Incumbent* best)
    : costs_(costs), options_(Beside(options)), best_(*best), poll_(options.stop) {}

SolveOptions JointSearch::Beside(SolveOptions options) const {
  if (costs_ != nullptr) options.table_limit -= Bytes(costs_->bytes());
  return options;
}

absl::Status JointSearch::Propose(size_t states, double cells) {
  constexpr double kPairs = 100 * 100;
  constexpr double kFewestStates = 20;
  constexpr size_t kOutlines = 128;
  // What the recurrence takes for a little slower may be faster.
  constexpr double kSlack = 1.2;
  if (costs_ == nullptr) return absl::OkStatus();
  const double pairs = static_cast<double>(costs_->last()) * costs_->longest();
  const double afforded = static_cast<double>(states) * std::min(1.0, kPairs / pairs);
  const double ideal = static_cast<double>(best_.chain().ideal_time().value());
  const double known = static_cast<double>(best_.makespan().value()) - ideal;
  absl::StatusOr<std::vector<Outline>> outlines =
      ProposeOutlines(best_.chain(), best_.transfers(), *costs_, best_.memory(),
                      {static_cast<size_t>(std::max(afforded, kFewestStates)), kOutlines, cells,
                       kSlack * known, options_.table_limit.value()},
                      options_);
  if (!outlines.ok()) return outlines.status();
  for (Outline& outline : *outlines) {
    absl::Status status = Rate(std::move(outline));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Schedule>> OfferPoints(const Frontier& alone, StopPoll* poll,
                                                    Incumbent* best) {
  std::optional<Schedule> fastest;
  Nanos fastest_time(kMaxTotal);
  for (const Frontier::Point& point : alone.points()) {
    absl::StatusOr<Schedule> schedule = DecodeSchedule(point.schedule, kMaxInstructions);
    if (!schedule.ok()) return absl::InternalError(schedule.status().message());
    absl::Status status = poll->Spend(static_cast<int64_t>(schedule->size()) * kWorkPerStep);
    if (!status.ok()) return status;
    const absl::StatusOr<std::optional<Nanos>> time = best->OfferQuickly(*schedule, {}, kPoint);
    if (!time.ok()) return time.status();
    if (!time->has_value() || **time >= fastest_time) continue;
    fastest_time = **time;
    fastest = *std::move(schedule);
  }
  return fastest;
}

absl::Status JointSearch::TakePoints(const Frontier& alone, bool thoroughly) {
  const absl::StatusOr<std::optional<Schedule>> fastest = OfferPoints(alone, &poll_, &best_);
  if (!fastest.ok() || !fastest->has_value()) return fastest.status();
  if (costs_ != nullptr) {
    std::optional<Outline> outline = OutlineOf(**fastest, *costs_);
    absl::Status status = outline ? Rate(*std::move(outline)) : absl::OkStatus();
    if (!status.ok()) return status;
  }
  return thoroughly ? best_.OfferThoroughly(**fastest, options_, kPoint) : absl::OkStatus();
}

absl::Status JointSearch::Improve(int outlines, int64_t schedules, bool thoroughly) {
  std::stable_sort(rated_.begin(), rated_.end(),
                   [](const Rated& a, const Rated& b) { return a.makespan < b.makespan; });
  outlines = std::min(outlines, static_cast<int>(rated_.size()));
  if (outlines > 0) schedules = schedules * kStages / std::max(kStages, costs_->last());
  for (; outlines > 0; --outlines) {
    Rated rated = std::move(rated_.front());
    rated_.erase(rated_.begin());
    // What one leaves is for the others.
    int64_t share = schedules / outlines;
    schedules -= share;
    const absl::StatusOr<Outline> improved =
        ImproveLocally(std::move(rated.outline), rated.makespan, *costs_, options_, &share, &best_);
    if (!improved.ok()) return improved.status();
    schedules += share;
    if (!thoroughly) continue;
    absl::Status status =
        best_.OfferThoroughly(ComputeScheduleOf(*improved, *costs_), options_, kJoint);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JointSearch::Rate(Outline outline) {
  absl::Status status = poll_.Spend(int64_t{costs_->last()} * kWorkPerStep);
  if (!status.ok()) return status;
  const absl::StatusOr<std::optional<Nanos>> time = OfferOutline(outline, *costs_, kJoint, &best_);
  if (!time.ok()) return time.status();
  if (time->has_value()) rated_.push_back({**time, std::move(outline)});
  return absl::OkStatus();
}

}  // namespace stowage
