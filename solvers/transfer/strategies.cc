#include "solvers/transfer/strategies.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "solvers/transfer/internal/relaxed_optimum.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

Nanos OffloadLowerBound(const OffloadProblem& problem) {
  const Nanos bound = problem.LowerBound();
  if (problem.link().full_duplex) return bound;
  return std::max(bound, FractionalOptimum(problem).value_or(bound));
}

absl::StatusOr<OffloadPlan> OffloadStrategy::Solve(const OffloadProblem& problem,
                                                   const SolveContext& context) const {
  absl::Status status = context.status();
  if (status.ok()) status = context.CheckStop();
  if (!status.ok()) return status;
  OffloadPlan plan;
  plan.lower_bound = problem.LowerBound();
  if (problem.memory() >= problem.peak()) {
    Offer(problem, {}, &plan);
    plan.explanation = "everything fits: nothing is offloaded";
    return plan;
  }
  if (problem.memory() < problem.least_memory()) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("with all activations offloaded an op needs ",
                                    problem.least_memory().value(), " bytes");
    return plan;
  }
  if (problem.overflow_bytes() > problem.link().host_memory) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("at least ", problem.overflow_bytes().value(),
                                    " bytes must be offloaded, the host takes ",
                                    problem.link().host_memory.value());
    return plan;
  }
  plan.lower_bound = OffloadLowerBound(problem);
  status = SolveHard(problem, context, &plan);
  if (!status.ok()) return status;
  context.Report(1.0);
  return plan;
}

void OffloadStrategy::Offer(const OffloadProblem& problem, const OffloadSet& set,
                            OffloadPlan* plan) {
  std::optional<OffloadTimeline> timeline = ReplaySet(problem, set);
  if (!timeline) return;
  if (plan->status == PlanStatus::kFound) {
    const OffloadTimeline& best = plan->timeline;
    if (std::tie(timeline->makespan, timeline->host_peak) >=
        std::tie(best.makespan, best.host_peak)) {
      return;
    }
  }
  plan->status = PlanStatus::kFound;
  plan->set = set;
  plan->timeline = *std::move(timeline);
}

OffloadSet EagerSet(const OffloadProblem& problem) {
  const int n = problem.size();
  // What ops i and later need at most, all activations before them counted.
  std::vector<Bytes> most(static_cast<size_t>(n) + 1);
  for (int i = n; i-- > 0;) {
    const size_t at = static_cast<size_t>(i);
    most[at] = std::max(most[at + 1], problem.prefix(i + 2) + problem.need(i));
  }
  OffloadSet set;
  for (int i = 0; i < n; ++i) {
    const bool enough = problem.prefix(i) >= problem.overflow_bytes();
    if (enough && most[static_cast<size_t>(i)] - problem.prefix(i) <= problem.memory()) break;
    if (problem.activation(i) > Bytes(0)) set.push_back(i);
  }
  return set;
}

namespace {

// Activations with bytes: nothing else is worth moving.
std::vector<int> Movable(const OffloadProblem& problem) {
  std::vector<int> movable;
  for (int i = 0; i < problem.size(); ++i) {
    if (problem.activation(i) > Bytes(0)) movable.push_back(i);
  }
  return movable;
}

class Greedy final : public OffloadStrategy {
 public:
  Greedy()
      : OffloadStrategy(
            {"offload_greedy",
             "the first activations, as few as needed (Beaumont et al. 2020, Greedy)"}) {}

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveContext&,
                         OffloadPlan* plan) const override {
    const OffloadSet set = EagerSet(problem);
    Offer(problem, set, plan);
    plan->explanation = plan->status == PlanStatus::kFound
                            ? absl::StrCat("the first ", set.size(), " activations that have bytes")
                            : "the first activations that are needed do not fit the host's memory";
    return absl::OkStatus();
  }
};

constexpr int kScores = 4;
constexpr int kDraws = 64;
constexpr uint64_t kSeed = 1;

using Weights = std::array<double, kScores>;

double ToDouble(Bytes bytes) { return static_cast<double>(bytes.value()); }
double ToDouble(Nanos nanos) { return static_cast<double>(nanos.value()); }

// The four priority scores of Zhang et al. 2019, on the step without offloading: how long an
// activation can be absent; that times its size; the load over the memory, summed over that time;
// the same with what is chosen already taken off the load.
class Scores {
 public:
  explicit Scores(const OffloadProblem& problem) : problem_(problem), n_(problem.size()) {
    for (int k = 0; k < 2 * n_; ++k) {
      const OffloadOp& op = problem.op(OpAt(k));
      time_.push_back(ToDouble(k < n_ ? op.forward_time : op.backward_time));
      const Bytes need = k < n_ ? op.forward_need : op.backward_need;
      over_.push_back(ToDouble(problem.prefix(OpAt(k) + 2) + need - problem.memory()));
    }
    const std::vector<double> until = Sums(time_);
    const std::vector<double> load = LoadSums(over_);
    for (int i = 0; i < n_; ++i) {
      const size_t at = static_cast<size_t>(i);
      const double gap = until[Return(i)] - until[at + 1];
      const double copies = ToDouble(problem.OffloadTime(i) + problem.PrefetchTime(i));
      absence_.push_back(std::max(gap - copies, 0.0));
      area_.push_back(absence_.back() * ToDouble(problem.activation(i)));
      weighted_.push_back(load[Return(i)] - load[at + 1]);
    }
    for (std::vector<double>* score : {&absence_, &area_, &weighted_}) Normalise(score);
  }

  // Activations by falling priority until the problem admits them; fewer if it never does.
  OffloadSet Choose(const Weights& weights) const {
    std::vector<int> open = Movable(problem_);
    // The last score changes with every choice; on long chains it is renewed less often.
    const size_t batch = open.size() / 128 + 1;
    std::vector<double> over = over_;
    OffloadSet set;
    while (!open.empty()) {
      const std::vector<double> priority = Priorities(weights, over);
      std::stable_sort(open.begin(), open.end(), [&priority](int a, int b) {
        return priority[static_cast<size_t>(a)] > priority[static_cast<size_t>(b)];
      });
      const size_t taken = std::min(batch, open.size());
      for (size_t place = 0; place < taken; ++place) {
        const int i = open[place];
        set.insert(std::lower_bound(set.begin(), set.end(), i), i);
      }
      TakeOff(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(taken), &over);
      open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(taken));
      if (problem_.Admits(set)) break;
    }
    return set;
  }

 private:
  // Takes activations off the load while they can be absent. Whole numbers of bytes: in any order.
  void TakeOff(std::vector<int>::const_iterator begin, std::vector<int>::const_iterator end,
               std::vector<double>* over) const {
    std::vector<double> rises(over->size() + 1);  // of what is absent, by place in the step
    for (auto it = begin; it != end; ++it) {
      rises[static_cast<size_t>(*it) + 1] += ToDouble(problem_.activation(*it));
      rises[Return(*it)] -= ToDouble(problem_.activation(*it));
    }
    double absent = 0;
    for (size_t k = 0; k < over->size(); ++k) {
      absent += rises[k];
      (*over)[k] -= absent;
    }
  }

  int OpAt(int k) const { return k < n_ ? k : 2 * n_ - 1 - k; }
  // Place in the step of backward i, which brings activation i back.
  size_t Return(int i) const { return static_cast<size_t>(2 * n_ - 1 - i); }

  static std::vector<double> Sums(const std::vector<double>& values) {
    std::vector<double> sums = {0.0};
    for (const double value : values) sums.push_back(sums.back() + value);
    return sums;
  }

  std::vector<double> LoadSums(const std::vector<double>& over) const {
    std::vector<double> load;
    for (size_t k = 0; k < over.size(); ++k) load.push_back(std::max(over[k], 0.0) * time_[k]);
    return Sums(load);
  }

  static void Normalise(std::vector<double>* score) {
    const double most = *std::max_element(score->begin(), score->end());
    if (most <= 0) return;
    for (double& value : *score) value /= most;
  }

  std::vector<double> Priorities(const Weights& weights, const std::vector<double>& over) const {
    const std::vector<double> load = LoadSums(over);
    std::vector<double> priority(static_cast<size_t>(n_));
    for (int i = 0; i < n_; ++i) {
      const size_t at = static_cast<size_t>(i);
      priority[at] = load[Return(i)] - load[at + 1];
    }
    Normalise(&priority);
    for (size_t i = 0; i < priority.size(); ++i) {
      priority[i] = weights[0] * absence_[i] + weights[1] * area_[i] + weights[2] * weighted_[i] +
                    weights[3] * priority[i];
    }
    return priority;
  }

  const OffloadProblem& problem_;
  const int n_;
  std::vector<double> time_;  // by place in the step
  std::vector<double> over_;  // load over the memory, by place in the step
  std::vector<double> absence_, area_, weighted_;
};

// Each score alone, all alike, then seeded draws.
Weights WeightsOf(int draw, std::mt19937_64* rng) {
  Weights weights{};
  if (draw < kScores) {
    weights[static_cast<size_t>(draw)] = 1.0;
  } else if (draw == kScores) {
    weights.fill(1.0);
  } else {
    for (double& weight : weights) weight = static_cast<double>((*rng)() >> 40);
  }
  return weights;
}

class AutoSwap final : public OffloadStrategy {
 public:
  AutoSwap()
      : OffloadStrategy(
            {"offload_autoswap", "activations by a weighted sum of four priority scores"}) {}

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveContext& context,
                         OffloadPlan* plan) const override {
    const Scores scores(problem);
    std::mt19937_64 rng(kSeed);
    StopPoll poll(context.stop());
    for (int draw = 0; draw < kDraws; ++draw) {
      absl::Status status = poll.Spend(1 << 20);
      if (!status.ok()) return status;
      const OffloadSet set = scores.Choose(WeightsOf(draw, &rng));
      if (problem.Admits(set)) Offer(problem, set, plan);
      context.Report(static_cast<double>(draw + 1) / kDraws);
    }
    plan->explanation = absl::StrCat("the best of ", kDraws, " weightings of the scores");
    return absl::OkStatus();
  }
};

constexpr int kStepsOfReplay = 64;  // for each op

// A slot or less for each activation leaves too much to rounding.
constexpr int64_t kFewestTableSlots = 500;
constexpr int64_t kSlotsOfActivation = 2;

int64_t SlotsFor(const OffloadProblem& problem, const SolveContext& context) {
  if (context.slots() > 0) return context.slots();
  return std::max(kFewestTableSlots, kSlotsOfActivation * problem.size());
}

class DynProg final : public OffloadStrategy {
 public:
  DynProg()
      : OffloadStrategy(
            {"offload_dynprog",
             "what is optimal when copies can be interrupted (Beaumont et al. 2020, DynProg)"}) {}

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveContext& context,
                         OffloadPlan* plan) const override {
    std::optional<RelaxedOptimum> optimum;
    if (context.slots() == 0) {
      absl::StatusOr<std::optional<RelaxedOptimum>> exact = ExactRelaxedOptimum(problem, context);
      if (!exact.ok()) return exact.status();
      optimum = *std::move(exact);
    }
    if (!optimum) {
      absl::StatusOr<RelaxedOptimum> slotted =
          SlottedRelaxedOptimum(problem, SlotsFor(problem, context), context);
      if (!slotted.ok()) return slotted.status();
      optimum = *std::move(slotted);
    }
    StopPoll poll(context.stop());
    return Finish(problem, *optimum, &poll, plan);
  }

 private:
  static absl::Status Finish(const OffloadProblem& problem, const RelaxedOptimum& optimum,
                             StopPoll* poll, OffloadPlan* plan) {
    plan->slots = optimum.slots;
    const bool exact = optimum.slots == 0;
    if (exact && optimum.sets.empty()) {
      plan->status = PlanStatus::kProvenInfeasible;
      plan->explanation = "no set of activations fits both the device's and the host's memory";
      return absl::OkStatus();
    }
    if (exact && !problem.link().full_duplex) {
      plan->lower_bound = std::max(plan->lower_bound, optimum.makespan);
    }
    for (const OffloadSet& set : optimum.sets) {
      absl::Status status = poll->Spend(int64_t{kStepsOfReplay} * problem.size());
      if (!status.ok()) return status;
      Offer(problem, set, plan);
    }
    plan->explanation = exact ? absl::StrCat("the best of ", optimum.sets.size(), " optimal sets")
                              : absl::StrCat("the best of ", optimum.sets.size(),
                                             " sets that are optimal in ", optimum.slots, " slots");
    if (exact) return absl::OkStatus();
    // Rounding may hide what Greedy sees.
    const bool rounded = plan->status == PlanStatus::kFound;
    Offer(problem, EagerSet(problem), plan);
    if (rounded) return absl::OkStatus();
    plan->explanation = absl::StrCat("rounding to ", optimum.slots, " slots leaves no set; ",
                                     plan->status == PlanStatus::kFound
                                         ? "the first activations, as few as needed"
                                         : "the first activations do not fit the host's memory");
    return absl::OkStatus();
  }
};

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
  Tflms()
      : OffloadStrategy(
            {"offload_tflms",
             "the first activations, prefetched some ops ahead, without watching memory",
             /*complete=*/false}) {}

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveContext& context,
                         OffloadPlan* plan) const override {
    const std::vector<int> movable = Movable(problem);
    const std::vector<int> counts = Steps(static_cast<int>(movable.size()));
    const std::vector<int> distances = Steps(problem.size());
    StopPoll poll(context.stop());
    for (const int count : counts) {
      const OffloadSet set(movable.begin(), movable.begin() + count);
      if (!problem.Admits(set)) continue;
      for (const int ahead : distances) {
        absl::Status status = poll.Spend(1024 * int64_t{problem.size()});
        if (!status.ok()) return status;
        OfferTimed(problem, set, Unwatched(problem, set, ahead), ahead, plan);
      }
      context.Report(static_cast<double>(count) / static_cast<double>(movable.size()));
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
};

constexpr size_t kMostThresholds = 512;

class Vdnn final : public OffloadStrategy {
 public:
  Vdnn()
      : OffloadStrategy(
            {"offload_vdnn",
             "activations whose forward is long for their size, or every other one of them"}) {}

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveContext& context,
                         OffloadPlan* plan) const override {
    const std::vector<int> ranked = ByRatio(problem);
    const size_t steps = std::min(ranked.size(), kMostThresholds);
    StopPoll poll(context.stop());
    for (size_t step = 1; step <= steps; ++step) {
      const size_t count = ranked.size() * step / steps;
      OffloadSet all(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count));
      std::sort(all.begin(), all.end());
      OffloadSet half;
      for (size_t i = 0; i < all.size(); i += 2) half.push_back(all[i]);
      absl::Status status = poll.Spend(1024 * int64_t{problem.size()});
      if (!status.ok()) return status;
      for (const OffloadSet& set : {all, half}) {
        if (problem.Admits(set)) Offer(problem, set, plan);
      }
      context.Report(static_cast<double>(step) / static_cast<double>(steps));
    }
    plan->explanation = absl::StrCat("the best of ", 2 * steps, " sets by ratio of time to size");
    return absl::OkStatus();
  }

 private:
  // Activations with bytes, the longest forward for its bytes first.
  static std::vector<int> ByRatio(const OffloadProblem& problem) {
    std::vector<int> ranked = Movable(problem);
    const auto cross = [&problem](int time, int size) {
      return absl::int128(problem.op(time).forward_time.value()) * problem.activation(size).value();
    };
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&cross](int a, int b) { return cross(a, b) > cross(b, a); });
    return ranked;
  }
};

}  // namespace

const OffloadStrategy& GreedyOffload() {
  static const Greedy* const kStrategy = new Greedy;
  return *kStrategy;
}

const OffloadStrategy& DynProgOffload() {
  static const DynProg* const kStrategy = new DynProg;
  return *kStrategy;
}

const OffloadStrategy& VdnnOffload() {
  static const Vdnn* const kStrategy = new Vdnn;
  return *kStrategy;
}

const OffloadStrategy& TflmsOffload() {
  static const Tflms* const kStrategy = new Tflms;
  return *kStrategy;
}

const OffloadStrategy& AutoSwapOffload() {
  static const AutoSwap* const kStrategy = new AutoSwap;
  return *kStrategy;
}

const std::vector<const OffloadStrategy*>& AllOffloadStrategies() {
  static const auto* const kAll = new std::vector<const OffloadStrategy*>{
      &DynProgOffload(), &GreedyOffload(), &VdnnOffload(), &TflmsOffload(), &AutoSwapOffload()};
  return *kAll;
}

}  // namespace stowage
