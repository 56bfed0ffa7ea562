// The solver over the tables of internal/sparse_table.h.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/non_persistent_table.h"
#include "solvers/chain/internal/persistent_frontier.h"
#include "solvers/chain/internal/sparse_table.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

// Of a table for budgets of one octave: some eight for a stage of a chain of 1,000.
constexpr int64_t kSlots = 8192;
// Intervals of up to so many stages are all there: of chains of up to kFewStages all, as their tables are small.
constexpr int kDenseStages = 8;
constexpr int kFewStages = 64;
// A table's values that are points of a frontier are no nearer to each other than this share of its memory.
constexpr int64_t kPoints = 512;
// Steps of a poll that making a schedule and replaying it takes, of a stage.
constexpr int64_t kStepsPerStage = 512;

// Schedules of one table are candidates where their peak is above `low` and not above `high`.
struct Octave {
  int64_t low, high;
};

// From store-all's peak down: what each budget's candidates are depends on the chain alone.
std::vector<Octave> OctavesOf(const PersistentProblem& problem, Bytes least_budget) {
  const int64_t least = least_budget.value();
  std::vector<Octave> octaves;
  int64_t high = problem.store_all_peak.value();
  for (; high / 2 > least; high /= 2) octaves.push_back({high / 2, high});
  octaves.push_back({0, high});
  return octaves;
}

// The least memory of the class, over all intervals: of chains of up to so many stages. Of longer ones, that of
// memory-persistent schedules.
constexpr int kExactLeastStages = 128;

// The smallest budget, and a schedule that needs no more.
struct LeastMemory {
  Bytes budget;
  Schedule schedule;
};

absl::StatusOr<LeastMemory> LeastMemoryOf(const PersistentProblem& problem,
                                          const SolveContext& context) {
  if (problem.chain().length() > kExactLeastStages) {
    absl::Status status = CheckScheduleSize(problem);
    if (!status.ok()) return status;
    return LeastMemory{problem.least_budget, MinimumMemorySchedule(problem)};
  }
  const absl::StatusOr<NonPersistentExtents> extents =
      ComputeExtents(problem.exact, /*moving=*/false, context);
  if (!extents.ok()) return extents.status();
  return LeastMemory{Bytes(LeastBudgetOf(problem.exact, *extents)),
                     LeastSchedule(problem.exact, *extents)};
}

int DenseStages(const Chain& chain) {
  return chain.length() <= kFewStages ? kFewStages + 1 : kDenseStages;
}

// What is saved of most stages; 0 of none.
int64_t MostFrequentSize(const PersistentSpace& exact) {
  std::map<int64_t, int> counts;
  std::pair<int, int64_t> most;
  for (int l = 1; l <= exact.last(); ++l) {
    most = std::max(most, {++counts[exact.saved(l)], exact.saved(l)});
  }
  return most.second;
}

// Bytes of a slot, so that there are about `slots` of them in `bytes`.
int64_t SlotFor(const PersistentProblem& problem, int64_t bytes, int64_t slots) {
  const int64_t least = std::max({bytes / slots, CommonUnit(problem.chain()), int64_t{1}});
  const int64_t size = problem.repeats ? MostFrequentSize(problem.exact) : 0;
  if (size < least) return least;
  // Errors of many equal stages add up: theirs is next to nothing.
  const int64_t in_slots = size / least;
  return (size + in_slots - 1) / in_slots;
}

// A table of one octave, and what its schedules may really need.
class OctaveTable {
 public:
  static absl::StatusOr<OctaveTable> Make(const PersistentProblem& problem,
                                          const SparseIntervals& intervals, const Octave& octave,
                                          const SolveContext& context) {
    OctaveTable result;
    result.unit_ = SlotFor(problem, octave.high, context.slots() > 0 ? context.slots() : kSlots);
    // What needs the octave's most bytes may need a little more in slots.
    const int64_t whole = octave.high / result.unit_;
    result.space_ =
        std::make_unique<PersistentSpace>(problem.chain(), result.unit_, Rounding::kCumulative);
    absl::StatusOr<std::unique_ptr<SparseTable>> table =
        SparseTable::Compute(*result.space_, intervals, whole + whole / 64 + 1, context);
    if (!table.ok()) return table.status();
    result.table_ = *std::move(table);
    result.margin_ = Margin(problem.exact, *result.space_, result.unit_);
    return result;
  }

  const SparseTable& table() const { return *table_; }
  // Of `memory` slots: nothing that takes as many may have a lower peak, in bytes.
  int64_t LeastPeak(int64_t memory) const { return memory * unit_ - margin_; }
  // The least makespan above the ideal of a schedule with the value of `overhead`.
  int64_t LeastOverhead(int64_t overhead) const {
    if (table_->time_unit() == 1) return overhead;
    return (overhead - 8 * space_->last()) * table_->time_unit();
  }

 private:
  // By how much what is held at a time may be more in slots than in bytes: of every stage one tensor, and
  // what an op takes beside.
  static int64_t Margin(const PersistentSpace& exact, const PersistentSpace& slots, int64_t unit) {
    int64_t margin = 6 * unit;
    for (int l = 1; l <= exact.last(); ++l) {
      margin += std::max({slots.saved(l) * unit - exact.saved(l),
                          slots.activation(l) * unit - exact.activation(l), int64_t{0}});
    }
    return margin;
  }

  int64_t unit_ = 1;
  int64_t margin_ = 0;
  std::unique_ptr<PersistentSpace> space_;
  std::unique_ptr<SparseTable> table_;
};

// The fastest candidate so far within a budget.
struct BestWithin {
  Schedule schedule;
  Nanos makespan{kInfinity};
  std::string explanation;
  int64_t slots = 0;
};

class SparseSearch {
 public:
  SparseSearch(const PersistentProblem& problem, const LeastMemory& least,
               const SolveContext& context)
      : problem_(problem),
        least_(least),
        context_(context),
        evaluator_(problem.instance),
        intervals_(problem.exact, DenseStages(problem.chain())),
        octaves_(OctavesOf(problem, least.budget)) {}

  // Candidates are the schedules of least memory and of checkpoint_sequential, and those of every table at every
  // memory at which its value changes. Of these the fastest that fits: more budget is never slower.
  absl::StatusOr<BestWithin> Solve(Bytes budget) {
    BestWithin best;
    absl::Status status = Offer(least_.schedule, budget, &best);
    if (!status.ok()) return status;
    best.explanation = "the schedule of least memory, not optimised for time";
    absl::StatusOr<Plan> periodic =
        CheckpointSequentialSolver().Solve(problem_.instance, budget, context_.Quiet());
    if (!periodic.ok()) return periodic.status();
    if (periodic->status == PlanStatus::kFound && periodic->prediction.makespan < best.makespan) {
      best.makespan = periodic->prediction.makespan;
      best.schedule = std::move(periodic->schedule);
      best.explanation = "nothing beat a periodic one";
    }
    for (size_t i = 0; i < octaves_.size(); ++i) {
      const Octave& octave = octaves_[i];
      if (octave.low >= budget.value()) continue;
      const Bytes within = std::min(budget, Bytes(octave.high));
      // Nor is anything within less.
      if (best.makespan <= MakespanLowerBound(problem_.instance, within)) break;
      const absl::StatusOr<OctaveTable> table = TableOf(i);
      if (absl::IsResourceExhausted(table.status()) && context_.slots() == 0) continue;
      if (!table.ok()) return table.status();
      status = OfferOf(*table, octave, within, &best);
      if (!status.ok()) return status;
    }
    return best;
  }

  // Candidates for all budgets, without those that gain next to nothing.
  absl::StatusOr<int64_t> AddAll(FrontierBuilder* builder) {
    absl::Status status = builder->Add(least_.schedule);
    if (!status.ok()) return status;
    absl::StatusOr<Frontier> periodic =
        CheckpointSequentialSolver().SolveFrontier(problem_.instance, context_.Quiet());
    if (!periodic.ok()) return periodic.status();
    builder->Add(*periodic);
    int64_t slots = 0;
    for (size_t i = 0; i < octaves_.size(); ++i) {
      const absl::StatusOr<OctaveTable> table = TableOf(i);
      if (absl::IsResourceExhausted(table.status()) && context_.slots() == 0) continue;
      if (!table.ok()) return table.status();
      slots = std::max(slots, table->table().slots());
      status = AddOf(*table, octaves_[i], builder);
      if (!status.ok()) return status;
    }
    return slots;
  }

 private:
  absl::StatusOr<OctaveTable> TableOf(size_t i) {
    const double share = 1.0 / static_cast<double>(octaves_.size());
    const double before = share * static_cast<double>(i);
    return OctaveTable::Make(problem_, intervals_, octaves_[i],
                             context_.Part(before, before + share));
  }

  absl::Status Offer(Schedule schedule, Bytes budget, BestWithin* best) {
    const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    if (simulation->peak > budget || simulation->makespan >= best->makespan)
      return absl::OkStatus();
    best->makespan = simulation->makespan;
    best->schedule = std::move(schedule);
    return absl::OkStatus();
  }

  absl::Status OfferOf(const OctaveTable& table, const Octave& octave, Bytes budget,
                       BestWithin* best) {
    const Nanos ideal = problem_.instance.ideal_time(), before = best->makespan;
    StopPoll poll(context_.stop());
    for (int64_t m = table.table().slots(); m > 0; --m) {
      const int64_t overhead = table.table().Overhead(m);
      if (overhead >= kInfinity) break;
      // What takes `overhead` needs more than `m` - 1 slots, and none of less memory is faster.
      if (table.LeastPeak(m) > budget.value()) continue;
      if (ideal + Nanos(table.LeastOverhead(overhead)) >= best->makespan) break;
      if (table.table().Overhead(m - 1) == overhead) continue;
      absl::Status status = poll.Spend(kStepsPerStage * problem_.chain().length());
      if (!status.ok()) return status;
      Schedule schedule = table.table().Backtrack(m);
      const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
      if (!simulation.ok()) return absl::InternalError(simulation.status().message());
      if (simulation->peak > budget || simulation->peak.value() <= octave.low ||
          simulation->makespan >= best->makespan) {
        continue;
      }
      best->makespan = simulation->makespan;
      best->schedule = std::move(schedule);
    }
    best->slots = std::max(best->slots, table.table().slots());
    if (best->makespan < before) {
      best->explanation = absl::StrCat("a table of ", table.table().slots(),
                                       " slots for some of the chain's intervals");
    }
    return absl::OkStatus();
  }

  absl::Status AddOf(const OctaveTable& table, const Octave& octave, FrontierBuilder* builder) {
    const int64_t slots = table.table().slots(), step = slots / kPoints + 1;
    // A little below the octave, too: what a schedule really needs may be more than its slots.
    const int64_t first = octave.low > 0 ? slots * 2 / 5 : 0;
    StopPoll poll(context_.stop());
    int64_t before = kInfinity;
    for (int64_t m = first + (slots - first) % step; m <= slots; m += step) {
      const int64_t overhead = table.table().Overhead(m);
      if (overhead >= before) continue;
      before = overhead;
      absl::Status status = poll.Spend(kStepsPerStage * problem_.chain().length());
      if (!status.ok()) return status;
      const Schedule schedule = table.table().Backtrack(m);
      const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
      if (!simulation.ok()) return absl::InternalError(simulation.status().message());
      if (simulation->peak < least_.budget) continue;  // Solve has no plan below it either
      status = builder->Add(schedule);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const PersistentProblem& problem_;
  const LeastMemory& least_;
  const SolveContext context_;
  const Evaluator evaluator_;
  const SparseIntervals intervals_;
  const std::vector<Octave> octaves_;
};

class SparseIntervalsSolverImpl final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    const absl::StatusOr<LeastMemory> least = LeastMemoryOf(*problem, context);
    if (!least.ok()) return least.status();
    plan.bounds.least_budget = least->budget;
    if (budget < plan.bounds.least_budget) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.bounds.schedule_class = ClassOfLeast(instance.chain());
      plan.explanation = absl::StrCat("of ", plan.bounds.schedule_class, ", none needs less than ",
                                      plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    absl::StatusOr<BestWithin> best = SparseSearch(*problem, *least, context).Solve(budget);
    if (!best.ok()) return best.status();
    plan.status = PlanStatus::kFound;
    plan.schedule = std::move(best->schedule);
    plan.provenance.slots = best->slots;
    plan.explanation = std::move(best->explanation);
    plan.bounds.proven_optimal = best->makespan <= StrongestMakespanLowerBound(instance, budget);
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    const absl::StatusOr<LeastMemory> least = LeastMemoryOf(*problem, context);
    if (!least.ok()) return least.status();
    FrontierBuilder builder(instance, context.frontier_limit());
    const absl::StatusOr<int64_t> slots = SparseSearch(*problem, *least, context).AddAll(&builder);
    if (!slots.ok()) return slots.status();
    return builder.BuildCompact({info_.name, ClassOfLeast(instance.chain()), least->budget,
                                 /*exact=*/false, *slots});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    const absl::StatusOr<LeastMemory> least = LeastMemoryOf(*problem, context);
    if (!least.ok()) return least.status();
    return least->budget;
  }

 private:
  // Of which the least budget is that of LeastMemoryOf.
  const std::string& ClassOfLeast(const Chain& chain) const {
    return chain.length() > kExactLeastStages ? OptimalPersistentSolver().info().schedule_class
                                              : info_.schedule_class;
  }

  const SolverInfo info_ = {
      "sparse_intervals",
      "good schedules of long chains, of a recurrence over some of their intervals",
      "schedules in which what is stored stays until its backward, except inputs of "
      "stored stages",
      ScheduleClass::kNonPersistent};
};

}  // namespace

const Solver& SparseIntervalsSolver() {
  static const auto* const kSolver = new SparseIntervalsSolverImpl;
  return *kSolver;
}

}  // namespace stowage
