#include "solvers/chain/segments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"

namespace stowage {
namespace {

// Peak of stages first..last when all of them are kept, above what is held below them: the last
// stage's, folded downwards by KeepBelow.
struct KeptPeak {
  Bytes forward;   // without the gradient that is held during the forwards
  Bytes backward;  // with the gradients

  // Of a recomputed segment's last stage, whose recompute may stop early.
  static KeptPeak OfLastAgain(const Stage& stage) {
    const Bytes saved = stage.stopped_saved();
    return {saved + stage.stopped_overhead(),
            saved + std::max(Bytes(0), stage.output_gradient + stage.backward_overhead)};
  }

  void KeepBelow(const Stage& stage) {
    forward = stage.saved + std::max(forward, stage.forward_saving_overhead);
    backward = stage.saved + std::max(backward, stage.output_gradient + stage.backward_overhead);
  }
};

}  // namespace

SegmentEnds SequentialSegments(const Chain& chain, int k) {
  const int size = chain.length() / k;
  SegmentEnds ends;
  for (int i = 1; i < k; ++i) ends.push_back(i * size);
  return ends;
}

Schedule SegmentedSchedule(const Chain& chain, const SegmentEnds& ends) {
  const int last = chain.length() + 1;
  Schedule schedule;
  int first = 1;
  for (const int end : ends) {
    schedule.push_back(ForwardNoSave(first));
    for (int l = first + 1; l <= end; ++l) schedule.push_back(ForwardNoSaveFreeInput(l));
    first = end + 1;
  }
  const auto keep_whole = [&schedule](int from, int to) {
    for (int l = from; l <= to; ++l) schedule.push_back(ForwardSave(l));
    for (int l = to; l >= from; --l) schedule.push_back(Backward(l));
  };
  keep_whole(first, last);
  for (size_t i = ends.size(); i-- > 0;) keep_whole(i == 0 ? 1 : ends[i - 1] + 1, ends[i]);
  return schedule;
}

TailPeaks::TailPeaks(const Chain& chain) : chain_(&chain) {
  const int last = chain.length() + 1;
  peaks_.resize(static_cast<size_t>(last) + 1);
  KeptPeak peak;
  for (int l = last; l >= 1; --l) {
    peak.KeepBelow(chain.stage(l));
    peaks_[static_cast<size_t>(l)] = std::max(chain.gradient(last) + peak.forward, peak.backward);
  }
}

SegmentedCosts::SegmentedCosts(const TailPeaks& tails)
    : tails_(tails),
      chain_(tails.chain()),
      checkpoints_(chain_.activation(0)),
      peak_(chain_.gradient(0)) {}

bool SegmentedCosts::Add(int end) {
  const int first = end_ + 1;
  for (int l = first; l <= end; ++l) {
    if (!chain_.stage(l).recomputable()) return false;
  }
  const Bytes seed = chain_.gradient(chain_.length() + 1);
  Bytes input;  // dropped by the forward, but for the segment's own
  for (int l = first; l <= end; ++l) {
    const Stage& stage = chain_.stage(l);
    peak_ = std::max(peak_, checkpoints_ + seed + input + stage.output + stage.forward_overhead);
    input = stage.output;
    recompute_ += l < end ? stage.forward_time : stage.stopped_time();
  }
  KeptPeak again = KeptPeak::OfLastAgain(chain_.stage(end));
  for (int l = end - 1; l >= first; --l) again.KeepBelow(chain_.stage(l));
  peak_ = std::max(
      {peak_, checkpoints_ + chain_.gradient(end) + again.forward, checkpoints_ + again.backward});
  checkpoints_ += chain_.activation(end);
  end_ = end;
  return true;
}

SegmentedCost SegmentedCosts::Cost() const {
  return {chain_.ideal_time() + recompute_, std::max(peak_, checkpoints_ + tails_.From(end_ + 1)),
          end_};
}

namespace {

// Faster; else less recomputed, where that takes no time; else of a lower peak.
bool Better(const SegmentedCost& a, const SegmentedCost& b) {
  return std::tie(a.makespan, a.recomputed_forwards, a.peak) <
         std::tie(b.makespan, b.recomputed_forwards, b.peak);
}

template <class Candidates>
Bytes LeastPeak(const Candidates& candidates) {
  Bytes least = candidates.front().cost.peak;
  for (const auto& c : candidates) least = std::min(least, c.cost.peak);
  return least;
}

// About what an encoded schedule of so many segments takes: each is a few runs of a few bytes.
int64_t EncodedBytes(size_t segments) { return 16 * (static_cast<int64_t>(segments) + 2); }

}  // namespace

std::string SegmentedSolver::Describe(int64_t parameter) const {
  return absl::StrCat(parameter, " segments");
}

absl::StatusOr<Plan> SegmentedSolver::DoSolve(const Instance& instance, Bytes budget,
                                              const SolveContext& context) const {
  const Chain& chain = instance.chain();
  const absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, context);
  if (!all.ok()) return all.status();
  const Candidate* best = nullptr;
  for (const Candidate& c : *all) {
    if (c.cost.peak > budget) continue;
    if (best == nullptr || Better(c.cost, best->cost)) best = &c;
  }
  Plan plan;
  plan.bounds.schedule_class = info().schedule_class;
  plan.bounds.least_budget = LeastPeak(*all);
  if (best == nullptr) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("the least peak of ", info().schedule_class, " is ",
                                    plan.bounds.least_budget.value(), " bytes");
    return plan;
  }
  plan.status = PlanStatus::kFound;
  plan.schedule = SegmentedSchedule(chain, Segments(chain, best->parameter));
  plan.bounds.proven_optimal = true;
  plan.explanation = best->cost.recomputed_forwards == 0 ? "everything fits: nothing is recomputed"
                                                         : Describe(best->parameter);
  return plan;
}

absl::StatusOr<Frontier> SegmentedSolver::DoSolveFrontier(const Instance& instance,
                                                          const SolveContext& context) const {
  const Chain& chain = instance.chain();
  absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, context);
  if (!all.ok()) return all.status();
  const Bytes least = LeastPeak(*all);
  // In the order of peaks, only what is better than all before is worth replaying.
  std::sort(all->begin(), all->end(), [](const Candidate& a, const Candidate& b) {
    if (a.cost.peak != b.cost.peak) return a.cost.peak < b.cost.peak;
    if (Better(a.cost, b.cost) || Better(b.cost, a.cost)) return Better(a.cost, b.cost);
    return a.parameter < b.parameter;  // else the library's sort would choose
  });
  std::vector<Candidate> best;
  std::vector<PointCost> costs;
  StopPoll poll(context.stop());
  for (const Candidate& c : *all) {
    if (!best.empty() && c.cost.makespan >= best.back().cost.makespan) continue;
    const SegmentEnds ends = Segments(chain, c.parameter);
    best.push_back(c);
    costs.push_back({c.cost.makespan, EncodedBytes(ends.size()), c.cost.peak});
    absl::Status status = poll.Spend(16 * static_cast<int64_t>(chain.length()));
    if (!status.ok()) return status;
  }
  // Schedules of long chains are large: only those are made that are kept.
  const std::vector<size_t> chosen = ChooseCompact(costs);
  FrontierBuilder builder(instance, context.frontier_limit());
  for (const size_t i : chosen) {
    absl::Status status = builder.Add(SegmentedSchedule(chain, Segments(chain, best[i].parameter)));
    if (status.ok()) status = context.CheckStop();
    if (!status.ok()) return status;
  }
  return builder.BuildCompact({info().name, info().schedule_class, least,
                               /*exact=*/chosen.size() == best.size(), /*slots=*/0});
}

absl::StatusOr<Bytes> SegmentedSolver::DoLeastBudget(const Instance& instance,
                                                     const SolveContext& context) const {
  const Chain& chain = instance.chain();
  const absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, context);
  if (!all.ok()) return all.status();
  return LeastPeak(*all);
}

namespace {

class CheckpointSequential final : public SegmentedSolver {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  // All counts that give segments of the same size share a walk over the chain: 2 sqrt(L) walks.
  absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                    const SolveContext& context) const override {
    const TailPeaks tails(chain);
    const int stages = chain.length();
    std::vector<Candidate> candidates;
    StopPoll poll(context.stop());
    for (int k = 1; k <= stages;) {
      const int size = stages / k;
      const int last = stages / size;  // the most segments of this size
      absl::Status status = poll.Spend(16 * int64_t{stages});
      if (!status.ok()) return status;
      SegmentedCosts costs(tails);
      for (int segments = 1; segments <= last; ++segments) {
        if (segments > 1 && !costs.Add((segments - 1) * size)) break;
        if (segments >= k) candidates.push_back({segments, costs.Cost()});
      }
      k = last + 1;
      context.Report(static_cast<double>(last) / stages);
    }
    return candidates;
  }

  SegmentEnds Segments(const Chain& chain, int64_t parameter) const override {
    return SequentialSegments(chain, static_cast<int>(parameter));
  }

 private:
  const SolverInfo info_ = {"checkpoint_sequential",
                            "equal segments that keep only their input, the last one kept whole",
                            "schedules that recompute segments of equal length, as many as may be",
                            ScheduleClass::kSegments};
};

// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost": segments that keep only their
// input and are recomputed whole, the last one too.

// The parameter of store-all.
constexpr int64_t kStoreAll = 0;

class Chen : public SegmentedSolver {
 protected:
  // Store-all, and every parameter's segments.
  absl::StatusOr<std::vector<Candidate>> CandidatesOf(const Chain& chain,
                                                      const std::vector<int64_t>& parameters,
                                                      const SolveContext& context) const {
    const TailPeaks tails(chain);
    std::vector<Candidate> candidates = {{kStoreAll, SegmentedCosts(tails).Cost()}};
    StopPoll poll(context.stop());
    for (size_t i = 0; i < parameters.size(); ++i) {
      absl::Status status = poll.Spend(16 * int64_t{chain.length()});
      if (!status.ok()) return status;
      SegmentedCosts costs(tails);
      const SegmentEnds ends = Segments(chain, parameters[i]);
      if (!std::all_of(ends.begin(), ends.end(), [&](int end) { return costs.Add(end); })) continue;
      candidates.push_back({parameters[i], costs.Cost()});
      context.Report(static_cast<double>(i + 1) / static_cast<double>(parameters.size()));
    }
    return candidates;
  }
};

class ChenSqrt final : public Chen {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                    const SolveContext& context) const override {
    const double root = std::sqrt(static_cast<double>(chain.length()));
    return CandidatesOf(chain, {std::lround(root)}, context);
  }

  // Segments of equal numbers of stages, as far as that goes: the parameter is how many.
  SegmentEnds Segments(const Chain& chain, int64_t parameter) const override {
    SegmentEnds ends;
    for (int64_t i = 1; i <= parameter; ++i) {
      ends.push_back(static_cast<int>(i * chain.length() / parameter));
    }
    return ends;
  }

 private:
  const SolverInfo info_ = {
      "chen_sqrt", "sqrt(L) segments of equal length, all recomputed (Chen et al. 2016)",
      "plain training, or recomputing sqrt(L) segments of equal length", ScheduleClass::kSegments};
};

class ChenGreedy final : public Chen {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  // A geometric grid of bounds from the largest stage to the whole chain, each different
  // segmentation once.
  absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                    const SolveContext& context) const override {
    int64_t largest = 1, total = 0;
    for (int l = 1; l <= chain.length(); ++l) {
      largest = std::max(largest, chain.stage(l).saved.value());
      total += chain.stage(l).saved.value();
    }
    total = std::max(total, largest);
    // Roots and products round alike on all machines; powers may not.
    double root = static_cast<double>(total) / static_cast<double>(largest);
    for (int grid = kGrid; grid > 1; grid /= 2) root = std::sqrt(root);
    std::vector<int64_t> bounds;
    SegmentEnds before;
    StopPoll poll(context.stop());
    double bound = static_cast<double>(largest);
    for (int i = 0; i <= kGrid; ++i, bound *= root) {
      absl::Status status = poll.Spend(16 * int64_t{chain.length()});
      if (!status.ok()) return status;
      const int64_t bytes = i == kGrid ? total : static_cast<int64_t>(bound);
      SegmentEnds ends = Segments(chain, bytes);
      if (ends == before) continue;
      bounds.push_back(bytes);
      before = std::move(ends);
    }
    return CandidatesOf(chain, bounds, context);
  }

  // The paper's Algorithm 3: a segment ends with the stage at which what it would save exceeds the
  // bound, which is the parameter.
  SegmentEnds Segments(const Chain& chain, int64_t parameter) const override {
    SegmentEnds ends;
    if (parameter == kStoreAll) return ends;
    int64_t held = 0;
    for (int l = 1; l <= chain.length(); ++l) {
      held += chain.stage(l).saved.value();
      if (held <= parameter && l < chain.length()) continue;
      ends.push_back(l);
      held = 0;
    }
    return ends;
  }

  std::string Describe(int64_t parameter) const override {
    return absl::StrCat("segments that end when they would save more than ", parameter, " bytes");
  }

 private:
  static constexpr int kGrid = 256;  // a power of two
  const SolverInfo info_ = {
      "chen_greedy", "segments by a bound on their memory, all recomputed (Chen et al. 2016)",
      "plain training, or recomputing segments that end at a bound, for a grid of bounds",
      ScheduleClass::kSegments};
};

}  // namespace

const Solver& CheckpointSequentialSolver() {
  static const CheckpointSequential* const kSolver = new CheckpointSequential;
  return *kSolver;
}

const Solver& ChenSqrtSolver() {
  static const ChenSqrt* const kSolver = new ChenSqrt;
  return *kSolver;
}

const Solver& ChenGreedySolver() {
  static const ChenGreedy* const kSolver = new ChenGreedy;
  return *kSolver;
}

}  // namespace stowage
