#include "solvers/transfer/solvers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/incumbent.h"
#include "solvers/transfer/internal/joint_recurrence.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/internal/segment_costs.h"
#include "solvers/transfer/internal/short_chain_search.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/strategies.h"

namespace stowage {
namespace {

constexpr char kExplanation[] = "parts kept, recomputed and offloaded together, changed locally";
constexpr char kJoint[] = "parts kept, recomputed and offloaded together";
constexpr char kPoint[] = "a schedule for more memory, what is too much of it offloaded";
// Of looking at one instruction of a schedule, in steps of a poll.
constexpr int64_t kWorkPerStep = 2000;
// Longer chains get fewer schedules.
constexpr int kStages = 100;

// Outlines that differ in one part or two neighbouring ones: less or more memory for a segment, a
// stage that goes from one part to the next, parts joined or split, an input that leaves or stays.
// They are made one by one, until `visit` returns false: all of them take O(L^2) memory.
class NeighbourVisit {
 public:
  NeighbourVisit(const Outline& outline, const SegmentCosts& costs,
                 absl::FunctionRef<bool(const Outline&)> visit)
      : outline_(outline), costs_(costs), visit_(visit) {}

  void Run() {
    for (size_t p = 0; p < outline_.size() && more_; ++p) {
      ChangeMemory(p);
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

  // The stages as one part, if they may be, with no more than the given memory, if that is enough.
  std::optional<OutlinePart> Part(int first, int last, bool saved, bool on_host,
                                  Bytes memory) const {
    OutlinePart part{first, last, saved, Bytes(0), on_host};
    if (saved && first == last) return part;
    if (last > costs_.last() - 1 || !costs_.MayRunTwice(first, saved ? last - 1 : last)) {
      return std::nullopt;
    }
    const SegmentCosts::Options context = costs_.OptionsOf(first, last, saved);
    if (context.begin == context.end) return std::nullopt;
    // Memory falls along the options.
    const SegmentOption* option = context.begin;
    while (option + 1 != context.end && option->memory > memory.value()) ++option;
    part.memory = Bytes(option->memory);
    return part;
  }

  void ChangeMemory(size_t p) {
    const OutlinePart& part = outline_[p];
    if (!Runs(part)) return;
    const SegmentCosts::Options context = costs_.OptionsOf(part.first, part.last, part.saved);
    const SegmentOption* at = context.begin;
    while (at != context.end && at->memory > part.memory.value()) ++at;
    for (const std::ptrdiff_t step : {-2, -1, 0, 1, 2}) {
      const SegmentOption* option = at + step;
      if (option < context.begin || option >= context.end) continue;
      if (option->memory == part.memory.value()) continue;
      OutlinePart changed = part;
      changed.memory = Bytes(option->memory);
      Replace(p, 1, {changed});
    }
  }

  void FlipInput(size_t p) {
    OutlinePart changed = outline_[p];
    changed.input_on_host = !changed.input_on_host;
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
    ReplaceIfAll(p, 1, {Part(part.first, part.last, !part.saved, part.input_on_host, part.memory)});
    if (part.first == part.last) return;
    for (int k = part.first; k < part.last; ++k) {
      const auto rest = Part(k + 1, part.last, part.saved, false, part.memory);
      ReplaceIfAll(p, 1, {Part(part.first, k, false, part.input_on_host, part.memory), rest});
      ReplaceIfAll(p, 1, {Part(part.first, k, true, part.input_on_host, part.memory), rest});
    }
    std::vector<OutlinePart> saved;
    for (int l = part.first; l <= part.last; ++l) {
      saved.push_back({l, l, true, Bytes(0), l == part.first && part.input_on_host});
    }
    Replace(p, 1, saved);
  }

  void JoinWithNext(size_t p) {
    const OutlinePart& part = outline_[p];
    const OutlinePart& next = outline_[p + 1];
    const Bytes memory = std::max(part.memory, next.memory);
    for (const Bytes most : {memory, Bytes(kMaxTotal)}) {
      ReplaceIfAll(p, 2, {Part(part.first, next.last, next.saved, part.input_on_host, most)});
    }
  }

  // One stage more, or less, for the part; its neighbour gets what is left.
  void MoveBoundary(size_t p) {
    const OutlinePart& part = outline_[p];
    const OutlinePart& next = outline_[p + 1];
    for (const int end : {part.last - 1, part.last + 1}) {
      if (end < part.first || end >= next.last) continue;
      ReplaceIfAll(p, 2,
                   {Part(part.first, end, part.saved, part.input_on_host, part.memory),
                    Part(end + 1, next.last, next.saved, next.input_on_host, next.memory)});
    }
  }

  const Outline outline_;  // a copy: whoever looks may move on from it
  const SegmentCosts& costs_;
  const absl::FunctionRef<bool(const Outline&)> visit_;
  bool more_ = true;
};

std::vector<TensorName> OnHostOf(const Outline& outline) {
  std::vector<TensorName> on_host;
  for (size_t p = 0; p < outline.size(); ++p) {
    if (!outline[p].input_on_host) continue;
    const bool saved = p > 0 && outline[p - 1].saved;
    on_host.push_back({saved ? TensorKind::kSaved : TensorKind::kActivation, outline[p].first - 1});
  }
  return on_host;
}

// Offers an outline's schedule, without transfers, with its own choice of what leaves and with
// others that are quick to find. As Incumbent::OfferQuickly.
absl::StatusOr<std::optional<Nanos>> OfferOutline(const Outline& outline, const SegmentCosts& costs,
                                                  const std::string& explanation, Incumbent* best) {
  return best->OfferQuickly(ComputeScheduleOf(outline, costs), OnHostOf(outline), explanation);
}

// A local search from `outline`, of the given time. Takes what it looks at off `schedules`.
class Climb {
 public:
  Climb(Outline outline, Nanos makespan, const SegmentCosts& costs, const SolveContext& context,
        int64_t* schedules, Incumbent* best)
      : outline_(std::move(outline)),
        makespan_(makespan),
        costs_(costs),
        poll_(context.stop()),
        schedules_(*schedules),
        best_(*best) {}

  // Moves to the first neighbour that is faster, again and again, until none is, nor any neighbour of
  // one that recomputes less but does not fit, or until no more schedules may be looked at.
  // CANCELLED, DEADLINE_EXCEEDED.
  absl::Status Run() {
    for (bool moved = true; moved;) {
      absl::StatusOr<bool> step = StepFrom(outline_);
      if (step.ok() && !*step) step = StepThroughUnfit();
      if (!step.ok()) return step.status();
      moved = *step;
    }
    return absl::OkStatus();
  }

 private:
  // By way of a neighbour that would be faster if it fitted.
  absl::StatusOr<bool> StepThroughUnfit() {
    const double now = RecomputeTimeOf(outline_, costs_);
    absl::StatusOr<bool> moved = false;
    NeighbourVisit(outline_, costs_, [&](const Outline& between) {
      if (schedules_ <= 0) return false;
      absl::Status status = poll_.Spend(int64_t{50} * costs_.last());
      if (!status.ok()) {
        moved = status;
      } else if (RecomputeTimeOf(between, costs_) < now) {
        moved = StepFrom(between);
      }
      return moved.ok() && !*moved;
    }).Run();
    return moved;
  }

  // To a neighbour that is faster; false if there is none, or no more may be looked at.
  absl::StatusOr<bool> StepFrom(const Outline& outline) {
    absl::StatusOr<bool> moved = false;
    NeighbourVisit(outline, costs_, [&](const Outline& neighbour) {
      if (schedules_ <= 0) return false;
      moved = MoveIfFaster(neighbour);
      return moved.ok() && !*moved;
    }).Run();
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

// Of stages that may run twice; the others are saved.
Schedule CheckpointEveryStage(const Chain& chain) {
  const auto saved = [&chain](int l) {
    return l > chain.length() || !chain.stage(l).recomputable();
  };
  Schedule schedule;
  for (int l = 1; l <= chain.length() + 1; ++l) {
    schedule.push_back(saved(l) ? ForwardSave(l) : ForwardNoSave(l));
  }
  for (int l = chain.length() + 1; l >= 1; --l) {
    if (!saved(l)) schedule.push_back(ForwardSave(l));
    schedule.push_back(Backward(l));
  }
  return schedule;
}

// The least memory in which a compute schedule runs with the first tensors on the host, as few as needed;
// all of it where copies take longer than times can say.
Bytes LeastEagerMemory(const Instance& instance, const Schedule& compute) {
  const TransferModel& link = *instance.link();
  const absl::StatusOr<ComputeTrace> trace = TraceOf(instance, compute);
  if (!trace.ok()) return Bytes(kMaxTotal);
  const auto problem_at = [&](Bytes memory) { return MakeTraceProblem(*trace, link, memory); };
  const absl::StatusOr<TraceProblem> any = problem_at(Bytes(0));
  if (!any.ok()) return Evaluator(instance).Run(compute)->peak;
  // Less memory takes more of the host.
  Bytes low = any->problem.least_memory(), high = std::max(any->problem.peak(), low);
  while (low < high) {
    const Bytes middle(low.value() + (high.value() - low.value()) / 2);
    const OffloadProblem problem = problem_at(middle)->problem;
    if (problem.BytesOf(EagerSet(problem)) <= link.host_memory) {
      high = middle;
    } else {
      low = middle + Bytes(1);
    }
  }
  return low;
}

// Store-all and a checkpoint of every stage.
absl::Status OfferQuickSchedules(Incumbent* best) {
  const absl::Status status =
      best->OfferQuickly(best->instance().store_all_schedule(), {}, "offloading alone").status();
  if (!status.ok()) return status;
  return best->OfferQuickly(CheckpointEveryStage(best->chain()), {}, "a checkpoint of every stage")
      .status();
}

// Schedules that cost next to nothing to find: these, and everything on the host. Something fits down to
// CheapLeastMemory.
absl::Status OfferCheapSchedules(const StopToken* stop, Incumbent* best) {
  const Chain& chain = best->chain();
  const Schedule least = LeastScheduleOnHost(chain);
  absl::Status status;
  if (Evaluator(best->instance()).Run(least).ok()) {
    status = best->Offer(least, "everything on the host that is not in use");
    if (status.ok()) status = best->OverlapBest(stop);
  }
  return status.ok() ? OfferQuickSchedules(best) : status;
}

// The least memory that these fit. O(L log memory).
Bytes CheapLeastMemory(const Instance& instance) {
  const Chain& chain = instance.chain();
  const absl::StatusOr<Simulation> on_host = Evaluator(instance).Run(LeastScheduleOnHost(chain));
  if (on_host.ok()) return on_host->peak;
  return std::min(LeastEagerMemory(instance, instance.store_all_schedule()),
                  LeastEagerMemory(instance, CheckpointEveryStage(chain)));
}

SolveContext Beside(const SegmentCosts* costs, const SolveContext& context) {
  return costs == nullptr ? context : context.WithMemory(context.memory() - Bytes(costs->bytes()));
}

// Looks for faster schedules, by outlines and their changes. Everything is counted in work, not in
// time. On chains too long for the costs of segments there are no outlines: only points of frontiers
// are of use. CANCELLED, DEADLINE_EXCEEDED.
class JointSearch {
 public:
  // All that is pointed to must outlive it. `costs` are of the chain and link of `best`, for its
  // memory or more; null where there are none. What they hold counts towards the context's memory.
  JointSearch(const SegmentCosts* costs, const SolveContext& context, Incumbent* best)
      : costs_(costs), context_(Beside(costs, context)), best_(*best), poll_(context.stop()) {}

  // What the recurrence proposes with so many states at a stage, fewer on long chains, in so many
  // cells of memory. Coarse cells find more different states, fine ones better ones.
  absl::Status Propose(size_t states, double cells) {
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
        ProposeOutlines(best_.chain(), best_.link(), *costs_, best_.memory(),
                        {static_cast<size_t>(std::max(afforded, kFewestStates)), kOutlines, cells,
                         kSlack * known, context_.memory().value()},
                        context_);
    if (!outlines.ok()) return outlines.status();
    for (Outline& outline : *outlines) {
      absl::Status status = Rate(std::move(outline));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Every point of a frontier of schedules without transfers, what is too much of it offloaded; the
  // best one gives an outline.
  absl::Status TakePoints(const Frontier& alone) {
    std::optional<Schedule> fastest;
    Nanos fastest_time(kMaxTotal);
    for (const Frontier::Point& point : alone.points()) {
      if (!best_.MayBeFaster(point.makespan, point.peak)) continue;  // nor unpacked
      Schedule schedule = point.schedule.Unpack();
      absl::Status status = poll_.Spend(static_cast<int64_t>(schedule.size()) * kWorkPerStep);
      if (!status.ok()) return status;
      const absl::StatusOr<std::optional<Nanos>> time = best_.OfferQuickly(schedule, {}, kPoint);
      if (!time.ok()) return time.status();
      if (!time->has_value() || **time >= fastest_time) continue;
      fastest_time = **time;
      fastest = std::move(schedule);
    }
    if (costs_ == nullptr || !fastest) return absl::OkStatus();
    std::optional<Outline> outline = OutlineOf(*fastest, *costs_);
    return outline ? Rate(*std::move(outline)) : absl::OkStatus();
  }

  // Changes the best outlines that have not been changed yet, so many of them, and looks at so many
  // schedules, fewer on long chains.
  absl::Status Improve(int outlines, int64_t schedules) {
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
      const absl::Status status =
          Climb(std::move(rated.outline), rated.makespan, *costs_, context_, &share, &best_).Run();
      if (!status.ok()) return status;
      schedules += share;
    }
    return absl::OkStatus();
  }

 private:
  struct Rated {
    Nanos makespan;
    Outline outline;
  };

  absl::Status Rate(Outline outline) {
    absl::Status status = poll_.Spend(int64_t{costs_->last()} * kWorkPerStep);
    if (!status.ok()) return status;
    const absl::StatusOr<std::optional<Nanos>> time =
        OfferOutline(outline, *costs_, kJoint, &best_);
    if (!time.ok()) return time.status();
    if (time->has_value()) rated_.push_back({**time, std::move(outline)});
    return absl::OkStatus();
  }

  const SegmentCosts* costs_;
  const SolveContext context_;  // less what the costs hold
  Incumbent& best_;
  StopPoll poll_;
  std::vector<Rated> rated_;
};

// Whether transfers are of any use.
bool MayTransfer(const Instance& instance) {
  return instance.link() && instance.link()->host_memory > Bytes(0);
}

// Of the recurrence within each budget: coarse cells find more different states, fine ones better ones.
constexpr size_t kStates = 150;
constexpr double kFineCells = 256;
constexpr double kCoarseCells = 64;
// Outlines that are changed locally, and the schedules looked at for it.
constexpr int kChanged = 1;
constexpr int64_t kSchedules = 1000;
// DynProg takes minutes on longer chains.
constexpr int kMostThoroughStages = 1000;

// Chains too long for the chain solver; who asks for slots gets its refusal.
bool MayGoWithout(const absl::Status& status, const SolveContext& context) {
  return absl::IsResourceExhausted(status) && context.slots() == 0;
}

// Searches within single budgets. What is found within one does not depend on the others.
class Search {
 public:
  // All that is pointed to must outlive it.
  Search(const Instance& instance, const SolveContext& context)
      : instance_(instance), context_(context), quiet_(context.Quiet()) {}

  // What all budgets have in common: of a chain too long for the chain solver, or for costs of segments, less.
  absl::Status Prepare() {
    absl::StatusOr<std::optional<SegmentCosts>> costs = SegmentCosts::Compute(
        instance_.chain(), *instance_.link(), instance_.store_all()->peak, context_);
    if (!costs.ok()) return costs.status();
    costs_ = *std::move(costs);
    const Bytes held(costs_ ? costs_->bytes() : 0);
    const SolveContext beside = context_.Part(0.0, 0.2).WithMemory(context_.memory() - held);
    absl::StatusOr<Frontier> alone = ChosenChainSolver().SolveFrontier(instance_, beside);
    if (!alone.ok() && !MayGoWithout(alone.status(), context_)) return alone.status();
    if (alone.ok()) alone_ = *std::move(alone);
    return absl::OkStatus();
  }

  // What recomputing finds alone.
  const Frontier& alone() const { return alone_; }

  // Until the lower bound is met.
  absl::Status Within(Incumbent* best) const {
    const Nanos bound = MakespanLowerBound(instance_, best->memory());
    absl::Status status = OfferCheapSchedules(context_.stop(), best);
    if (!status.ok() || best->makespan() <= bound) return status;
    JointSearch search(costs_ ? &*costs_ : nullptr, quiet_, best);
    status = search.TakePoints(alone_);
    if (status.ok()) status = search.Propose(kStates, kFineCells);
    if (status.ok()) status = search.Propose(kStates, kCoarseCells);
    if (status.ok()) status = search.Improve(kChanged, kSchedules);
    if (status.ok() && instance_.chain().length() <= kMostThoroughStages) {
      status = best->OfferThoroughly(instance_.store_all_schedule(), quiet_, "offloading alone");
    }
    return status.ok() ? best->OverlapBest(context_.stop()) : status;
  }

 private:
  const Instance& instance_;
  const SolveContext context_;
  const SolveContext quiet_;
  std::optional<SegmentCosts> costs_;
  Frontier alone_;
};

class Joint final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    if (!MayTransfer(instance)) return ChosenChainSolver().Solve(instance, budget, context);
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    const Bytes proven = PeakLowerBound(instance.chain());
    const absl::StatusOr<Bytes> least = LeastBudget(instance, context.Quiet());
    if (!least.ok()) return least.status();
    if (budget < proven) return Infeasible(proven, *least, budget, std::move(plan));
    std::vector<Bytes> grid = JointGrid(proven, instance.store_all()->peak);
    if (*least > proven) grid.insert(std::upper_bound(grid.begin(), grid.end(), *least), *least);
    FastestSchedule best(budget, context.incumbent());
    absl::Status status =
        SearchUpTo(instance, GridFor(std::move(grid), budget), budget, context, &best);
    absl::StatusOr<bool> exact = false;
    if (status.ok()) {
      exact = SearchAll(instance, context.Part(0.99, 1.0), &best);
      status = exact.status();
    }
    const bool cut_short = absl::IsDeadlineExceeded(status);
    if (!status.ok() && !(best.found() && cut_short)) return status;
    if (absl::IsCancelled(context.CheckStop())) return context.CheckStop();
    if (!best.found()) return Infeasible(proven, *least, budget, std::move(plan));
    plan.status = PlanStatus::kFound;
    plan.schedule = best.schedule();
    plan.bounds.proven_optimal =
        (exact.ok() && *exact) || best.makespan() <= MakespanLowerBound(instance, budget);
    if (*least <= proven) plan.bounds.least_budget = proven;
    plan.search_complete = !cut_short;
    plan.explanation = best.explanation();
    if (cut_short) absl::StrAppend(&plan.explanation, "; the deadline cut the search short");
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    if (!MayTransfer(instance)) return ChosenChainSolver().SolveFrontier(instance, context);
    FrontierBuilder builder(instance, context.frontier_limit());
    absl::Status status = OfferWithoutSearch(instance, &builder);
    if (!status.ok()) return status;
    status = SearchAllBudgets(instance, context, &builder);
    const bool late = absl::IsDeadlineExceeded(status);
    if (!status.ok() && !late) return status;
    return builder.BuildCompact({info_.name, info_.schedule_class, PeakLowerBound(instance.chain()),
                                 /*exact=*/false, /*slots=*/0, /*search_complete=*/!late});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const Chain& chain = instance.chain();
    if (!MayTransfer(instance)) return ChosenChainSolver().LeastBudget(instance, context);
    const Bytes cheap = CheapLeastMemory(instance);
    if (cheap <= PeakLowerBound(chain)) return cheap;
    const absl::StatusOr<Bytes> alone = ChosenChainSolver().LeastBudget(instance, context);
    if (absl::IsResourceExhausted(alone.status())) return cheap;
    if (!alone.ok()) return alone.status();
    return std::min(cheap, *alone);
  }

 private:
  // The fastest schedule of the grid's budgets up to `budget`, and of the chain solver's choice at the budget itself,
  // which is monotone: "more budget is never slower" in algorithms.md. The largest budget first: it soon has a good
  // plan. A smaller one is left out where its bound says that it is of no use.
  static absl::Status SearchUpTo(const Instance& instance, const std::vector<Bytes>& grid,
                                 Bytes budget, const SolveContext& context, FastestSchedule* best) {
    absl::Status status = StopPoll(context.stop()).Spend(1);
    if (status.ok()) status = SearchGrid(instance, grid, context, best);
    if (!status.ok() || best->makespan() <= MakespanLowerBound(instance, budget)) return status;
    const absl::StatusOr<Plan> alone =
        ChosenChainSolver().Solve(instance, budget, context.Part(0.9, 0.99));
    if (!alone.ok())
      return MayGoWithout(alone.status(), context) ? absl::OkStatus() : alone.status();
    if (alone->status == PlanStatus::kFound) {
      best->Offer(alone->schedule, alone->prediction.peak, alone->prediction.makespan,
                  "recomputing alone");
    }
    return absl::OkStatus();
  }

  // At every budget something, in next to no time.
  static absl::Status OfferWithoutSearch(const Instance& instance, FrontierBuilder* builder) {
    absl::Status status = builder->Add(instance.store_all_schedule());
    const Schedule least = LeastScheduleOnHost(instance.chain());
    if (status.ok() && Evaluator(instance).Run(least).ok()) status = builder->Add(least);
    for (const Bytes budget : JointGrid(CheapLeastMemory(instance), instance.store_all()->peak)) {
      Incumbent best(instance, budget);
      if (status.ok()) status = OfferQuickSchedules(&best);
      if (status.ok() && best.found()) status = builder->Add(best.schedule());
      if (!status.ok()) break;
    }
    return status;
  }

  // Those are first that lie apart: a deadline leaves plans for little memory and for much. What a search within one
  // budget has at the deadline is kept.
  absl::Status SearchAllBudgets(const Instance& instance, const SolveContext& context,
                                FrontierBuilder* builder) const {
    Search search(instance, context);
    absl::Status status = search.Prepare();
    if (!status.ok()) return status;
    builder->Add(search.alone());
    const absl::StatusOr<Bytes> least = LeastBudget(instance, context.Quiet());
    if (!least.ok()) return least.status();
    const std::vector<Bytes> grid = JointGrid(*least, instance.store_all()->peak);
    size_t searched = 0;
    for (const size_t b : ApartFirst(grid.size())) {
      Incumbent best(instance, grid[b]);
      status = search.Within(&best);
      if (best.found()) status.Update(builder->Add(best.schedule()));
      if (!status.ok()) return status;
      context.Report(0.2 +
                     0.8 * (static_cast<double>(++searched) / static_cast<double>(grid.size())));
    }
    return status;
  }

  // On a short chain, all schedules. Whether none is faster than what is found then, of whatever class.
  static absl::StatusOr<bool> SearchAll(const Instance& instance, const SolveContext& context,
                                        FastestSchedule* best) {
    const Chain& chain = instance.chain();
    if (chain.length() > kShortChain) return false;
    if (best->makespan() <= MakespanLowerBound(instance, best->memory())) return true;
    const absl::StatusOr<ShortChainAnswer> answer =
        SearchShortChain(instance, best->memory(), best->makespan(), context);
    if (!answer.ok()) return answer.status();
    if (answer->schedule) {
      const absl::StatusOr<Simulation> s = Evaluator(instance).Run(*answer->schedule);
      if (!s.ok()) return absl::InternalError(s.status().message());
      best->Offer(*answer->schedule, s->peak, s->makespan, "the fastest of all schedules");
    }
    bool whole =
        !HasParts(chain);  // parts may be copied by themselves, collectives run beside compute
    for (int l = 1; l <= chain.length() + 1; ++l) whole = whole && !chain.stage(l).collective;
    return whole && answer->complete;
  }

  static absl::Status SearchGrid(const Instance& instance, const std::vector<Bytes>& grid,
                                 const SolveContext& context, FastestSchedule* best) {
    const Bytes budget = best->memory();
    Incumbent first(instance, *std::prev(std::upper_bound(grid.begin(), grid.end(), budget)), best);
    absl::Status status = OfferCheapSchedules(context.stop(), &first);
    if (!status.ok() || best->makespan() <= MakespanLowerBound(instance, budget)) return status;
    Search search(instance, context);
    status = search.Prepare();
    for (size_t left = grid.size(); status.ok() && left > 0; --left) {
      context.Report(0.9 - 0.7 * static_cast<double>(left) / static_cast<double>(grid.size()));
      const Bytes within = std::min(budget, grid[left - 1]);
      if (best->makespan() <= MakespanLowerBound(instance, within)) break;
      Incumbent at(instance, grid[left - 1], best);
      status = search.Within(&at);
    }
    return status;
  }

  // No schedule fits, or none is found.
  static Plan Infeasible(Bytes proven, Bytes least, Bytes budget, Plan plan) {
    plan.bounds.least_budget = least;
    if (budget < proven) {
      plan.bounds.least_budget = proven;
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("no schedule needs less than ", proven.value(), " bytes");
    } else {
      plan.status = PlanStatus::kNotFound;
      plan.explanation = absl::StrCat("the host's memory is too small to offload all; with ",
                                      least.value(), " bytes a schedule is found");
    }
    return plan;
  }

  const SolverInfo info_ = {"joint",
                            "keeps, recomputes or offloads, stage by stage (the default where a "
                            "link to the host is known)",
                            "schedules that recompute and copy to the host",
                            ScheduleClass::kAll,
                            /*chains=*/true,
                            /*graphs=*/false,
                            /*copies=*/true,
                            Anytime::kWithLink};
};

}  // namespace

const Solver& JointSolver() {
  static const auto* const kSolver = new Joint;
  return *kSolver;
}

}  // namespace stowage
